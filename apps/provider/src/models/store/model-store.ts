/**
 * The models that an owner has: a folder with a list of what is in it, where it came from, what its hash is and whether it is
 * served. The list is replaced as a whole, so that a crash leaves the old one or the new one.
 */
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, dirname, isAbsolute, join } from 'node:path';
import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import { writePrivateFile } from '../../files/private-file.js';

const EntrySchema = Type.Object({
  /** What clients pass as `model`. */
  id: Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,255}$' }),
  /** The model's first file, or the folder of an image model: a name in the library's folder, or the path of what was here before. */
  file: Type.String({ minLength: 1 }),
  /** All its files; of most models one. */
  files: Type.Array(Type.String({ minLength: 1 }), { minItems: 1 }),
  sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
  bytes: Type.Integer({ minimum: 0 }),
  source: Type.String(),
  pulled_at: Type.Integer({ minimum: 0 }),
  /** How long it stays in memory (`always`, `on_demand` or minutes); null: it is not served. */
  use: Type.Union([Type.String(), Type.Null()]),
});
const ListSchema = Type.Object({ version: Type.Literal(1), models: Type.Array(EntrySchema) });
export type LibraryEntry = Static<typeof EntrySchema>;

const list = Compile(ListSchema);

/** The list cannot be used. The message is one sentence for the owner. */
export class LibraryError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'LibraryError';
  }
}

export class Library {
  readonly #list: string;

  /** `directory`: made when something is put into it. */
  constructor(readonly directory: string) {
    this.#list = join(directory, 'library.json');
  }

  /** Throws {@link LibraryError} for a list that is damaged. */
  entries(): readonly LibraryEntry[] {
    if (!existsSync(this.#list)) return [];
    let value: unknown;
    try {
      value = JSON.parse(readFileSync(this.#list, 'utf8'));
    } catch {
      value = null;
    }
    if (!list.Check(value)) throw new LibraryError(`the list of models ${this.#list} is damaged; remove it and pull the models again`);
    return value.models;
  }

  find(id: string): LibraryEntry | null {
    return this.entries().find((entry) => entry.id === id) ?? null;
  }

  /** Puts an entry in, or in the place of the one with its id. */
  put(entry: LibraryEntry): void {
    this.#write([...this.entries().filter(({ id }) => id !== entry.id), entry]);
  }

  /** Takes an entry out, with those of its files that lie in the folder and that no other entry needs. Whether it was there. */
  remove(id: string): boolean {
    const entry = this.find(id);
    if (entry === null) return false;
    const rest = this.entries().filter((other) => other.id !== id);
    this.#write(rest);
    const needed = new Set(rest.flatMap(({ files }) => files));
    for (const file of entry.files) if (!isAbsolute(file) && !needed.has(file)) rmSync(join(this.directory, file), { force: true });
    // What is left of a model's own folder: beginnings of downloads, and the folders themselves.
    const isFolder = !entry.files.includes(entry.file) && basename(entry.file) === entry.file;
    if (isFolder && !rest.some(({ file }) => file === entry.file))
      rmSync(join(this.directory, entry.file), { recursive: true, force: true });
    return true;
  }

  /** Where the model's first file, or its folder, is. */
  path({ file }: LibraryEntry): string {
    return isAbsolute(file) ? file : join(this.directory, file);
  }

  #write(models: readonly LibraryEntry[]): void {
    mkdirSync(dirname(this.#list), { recursive: true, mode: 0o700 });
    writePrivateFile(this.#list, `${JSON.stringify({ version: 1, models }, null, 2)}\n`);
  }
}
