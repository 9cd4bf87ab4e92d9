/** `ModelHashes`: hashes of the served models' files, computed in the background. Changed files are noticed by size, time and inode. */
import { type FileHashes, readStampsSync } from '../models/file-hash.js';
import { ModelFileError } from '../models/gguf-header.js';
import type { ModelFacts } from '../models/model-facts.js';

interface ModelHashesOptions {
  readonly hashes: FileHashes;
  /** Called when a hash became known, or no longer applies. */
  readonly onChange: () => void;
  /** Called when the hashing ended early. */
  readonly onFailure: (error: unknown) => void;
  /** Called when the files of a model turned out to have another content than before. */
  readonly onReplaced: (model: ModelFiles) => void;
}

type ModelFiles = Pick<ModelFacts, 'id' | 'path' | 'files'>;

export interface HashedModel extends ModelFiles {
  /** Hash of the pulled model. Undefined: any file is served. */
  readonly expected?: string | undefined;
}

/** Delay until a file that changed while it was hashed is hashed again. */
const RETRY_MS = 10_000;
/** Delay after a read error. Longer, because each attempt may read most of a large file. */
const READ_ERROR_RETRY_MS = 5 * 60_000;

interface KnownHash {
  /** Read before the hashing; null: a file could not be read. */
  readonly stamps: string | null;
  /** Null: the hashing failed. */
  readonly sha256: string | null;
}

export class ModelHashes {
  readonly #options: ModelHashesOptions;
  #models: readonly HashedModel[] = [];
  /** By the paths of the files. The same model with another projector has another hash. */
  readonly #known = new Map<string, KnownHash>();
  /** Last known contents by the paths of the files, as hashes: at first, those expected. */
  readonly #contents = new Map<string, string>();
  /** Files of a model when its engine was started, by id. The hash is null until these stamps have been hashed. */
  readonly #started = new Map<string, KnownHash>();
  /** Whether a hash was dropped since the last `onChange`. */
  #isDropped = false;
  #isHashing = false;
  #mustRunAgain = false;
  #retry: { readonly timer: NodeJS.Timeout; readonly at: number } | null = null;
  #isClosed = false;

  constructor(options: ModelHashesOptions) {
    this.#options = options;
  }

  /** Replaces the list of models, and hashes the new ones. */
  setModels(models: readonly HashedModel[]): void {
    this.#models = models;
    const keys = new Set(models.map(filesKey));
    for (const map of [this.#known, this.#contents]) for (const key of [...map.keys()]) if (!keys.has(key)) map.delete(key);
    for (const model of models) if (model.expected !== undefined) this.#contents.set(filesKey(model), model.expected);
    this.#hash();
  }

  /**
   * Hash of a model. Null: not computed yet.
   *
   * @param isLoaded Whether an engine has the model. Null then also if the files had another hash when the engine was started.
   */
  hashOf(model: ModelFiles, isLoaded: boolean): string | null {
    const key = filesKey(model);
    const known = this.#known.get(key);
    if (known === undefined) return null;
    const stamps = readStampsSync(model.files);
    if (stamps !== known.stamps) {
      this.#known.delete(key);
      this.#isDropped ||= known.sha256 !== null;
      this.#hash();
      return null;
    }
    return isLoaded && this.#started.get(model.id)?.sha256 !== known.sha256 ? null : known.sha256;
  }

  /**
   * Call before an engine is started.
   *
   * @param expected Hash of the pulled model; undefined: any file is served.
   * @throws {ModelFileError} The files have another hash.
   */
  async beforeStart(model: ModelFiles, expected: string | undefined, signal: AbortSignal): Promise<void> {
    const stamps = readStampsSync(model.files);
    const known = this.#known.get(filesKey(model));
    this.#started.set(model.id, { stamps, sha256: known?.stamps === stamps ? known.sha256 : null });
    if (expected === undefined) return;
    if ((await this.#options.hashes.hashModel(model.files, signal)) !== expected) {
      throw new ModelFileError(`the file ${model.path} has changed since the download; pull the model again`);
    }
    this.#setKnown(model, { stamps, sha256: expected });
  }

  /** Cancels a delayed hashing. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#retry?.timer);
  }

  #setKnown(model: ModelFiles, known: KnownHash): void {
    const key = filesKey(model);
    this.#known.set(key, known);
    if (known.sha256 !== null) {
      const before = this.#contents.get(key) ?? known.sha256;
      this.#contents.set(key, known.sha256);
      if (before !== known.sha256) this.#options.onReplaced(model);
    }
    if (this.#started.get(model.id)?.stamps === known.stamps) this.#started.set(model.id, known);
  }

  #hash(): void {
    this.#mustRunAgain = true;
    if (!this.#isHashing) this.#hashAll().catch(this.#options.onFailure);
  }

  /** Hashes the models in the background, one at a time. Reports each hash. */
  async #hashAll(): Promise<void> {
    this.#isHashing = true;
    try {
      // The caller may be about to report the hashes itself.
      await null;
      while (this.#mustRunAgain) {
        this.#mustRunAgain = false;
        if (this.#isDropped) {
          this.#isDropped = false;
          this.#options.onChange();
        }
        for (const model of this.#models) await this.#hashModel(model);
      }
    } finally {
      this.#isHashing = false;
    }
  }

  async #hashModel(model: ModelFiles): Promise<void> {
    const key = filesKey(model);
    if (this.#known.has(key)) return;
    const stamps = readStampsSync(model.files);
    // An unreadable file also fails at loading, which is reported to the owner.
    const sha256 = await this.#options.hashes.hashModel(model.files).catch(() => null);
    // `beforeStart` may have verified the files meanwhile.
    if (this.#known.has(key)) return;
    if (readStampsSync(model.files) !== stamps) {
      this.#hashLater(RETRY_MS);
      return;
    }
    this.#setKnown(model, { stamps, sha256 });
    if (sha256 === null) this.#hashLater(READ_ERROR_RETRY_MS);
    else this.#options.onChange();
  }

  #hashLater(delayMs: number): void {
    const at = performance.now() + delayMs;
    if (this.#isClosed || (this.#retry !== null && this.#retry.at <= at)) return;
    clearTimeout(this.#retry?.timer);
    const timer = setTimeout(() => {
      this.#retry = null;
      for (const [key, { sha256 }] of [...this.#known]) if (sha256 === null) this.#known.delete(key);
      this.#hash();
    }, delayMs);
    timer.unref();
    this.#retry = { timer, at };
  }
}

function filesKey({ files }: ModelFiles): string {
  return files.join('\n');
}
