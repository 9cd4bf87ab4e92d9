/** `ModelStore`: the models on the owner's disk. `library.json` lists them; their files are in the same folder or elsewhere. */
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { lazyValidator } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { writePrivateFile } from '../../files/private-file.js';

const EntrySchema = Type.Object({
  /** Value that clients pass as `model`. */
  id: Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,255}$' }),
  /** First file, or folder of an image model: a name in the store's folder, or a local file's absolute path. */
  file: Type.String({ minLength: 1 }),
  /** All files, with a projector last. Most models have one file. */
  files: Type.Array(Type.String({ minLength: 1 }), { minItems: 1 }),
  /** The projector among the files. Absent if the model reads no images. */
  projector: Type.Optional(Type.String({ minLength: 1 })),
  sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
  bytes: Type.Integer({ minimum: 0 }),
  source: Type.String(),
  pulled_at: Type.Integer({ minimum: 0 }),
  /** Keep-alive setting (`always`, `on_demand` or minutes); null if not served. */
  use: Type.Union([Type.String(), Type.Null()]),
});
const ListSchema = Type.Object({ version: Type.Literal(1), models: Type.Array(EntrySchema) });
export type StoredModel = Static<typeof EntrySchema>;

const list = lazyValidator(ListSchema);

/** The list is unusable. The message is a sentence for the Mac's owner. */
export class ModelStoreError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ModelStoreError';
  }
}

export class ModelStore {
  readonly #listFile: string;

  constructor(readonly directory: string) {
    this.#listFile = join(directory, 'library.json');
  }

  /** All models; none if there is no list. Throws {@link ModelStoreError} for a damaged list. */
  entries(): readonly StoredModel[] {
    if (!existsSync(this.#listFile)) return [];
    let value: unknown;
    try {
      value = JSON.parse(readFileSync(this.#listFile, 'utf8'));
    } catch {
      value = null;
    }
    if (!list().Check(value))
      throw new ModelStoreError(`the list of models ${this.#listFile} is damaged; remove it and pull the models again`);
    return value.models;
  }

  find(id: string): StoredModel | null {
    return this.entries().find((entry) => entry.id === id) ?? null;
  }

  /** Adds an entry. Replaces an entry with the same id, and deletes those of its files that no entry uses. */
  put(entry: StoredModel): void {
    const replaced = this.find(entry.id);
    this.#write([...this.entries().filter(({ id }) => id !== entry.id), entry]);
    if (replaced !== null) this.#deleteFilesOf(replaced);
  }

  /** Removes an entry and those of its files in the folder that no entry uses. Returns whether the entry existed. */
  remove(id: string): boolean {
    const entry = this.find(id);
    if (entry === null) return false;
    this.#write(this.entries().filter((other) => other.id !== id));
    this.#deleteFilesOf(entry);
    return true;
  }

  /** Deletes the files of a former entry that no entry uses. */
  #deleteFilesOf({ file: place, files }: StoredModel): void {
    this.deleteUnused(files);
    // Removes the rest of a model's own folder: partial downloads and the folder.
    const isFolder = !files.includes(place) && basename(place) === place;
    if (isFolder && !this.entries().some(({ file }) => file === place))
      rmSync(join(this.directory, place), { recursive: true, force: true });
  }

  /** Deletes those of `files` that are in the folder and belong to no entry. */
  deleteUnused(files: readonly string[]): void {
    // Compared without case, as most file systems of Macs do.
    const needed = new Set(this.entries().flatMap((entry) => entry.files.map((file) => file.toLowerCase())));
    for (const file of files) {
      if (!isAbsolute(file) && !needed.has(file.toLowerCase())) rmSync(join(this.directory, file), { force: true });
    }
  }

  /** Path of the model's first file or folder. */
  path({ file }: StoredModel): string {
    return this.#pathOf(file);
  }

  projectorPath({ projector }: StoredModel): string | null {
    return projector === undefined ? null : this.#pathOf(projector);
  }

  #pathOf(file: string): string {
    return isAbsolute(file) ? file : join(this.directory, file);
  }

  #write(models: readonly StoredModel[]): void {
    mkdirSync(dirname(this.#listFile), { recursive: true, mode: 0o700 });
    writePrivateFile(this.#listFile, `${JSON.stringify({ version: 1, models }, null, 2)}\n`);
  }
}
