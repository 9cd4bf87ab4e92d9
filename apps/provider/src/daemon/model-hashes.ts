/**
 * `ModelHashes`: SHA-256 of the served models' files, which offers report to the coordinator. Computed in the background.
 *
 * A file is taken as changed when its stamps (size, modification time, inode) differ.
 */
import { type FileHashes, readStampsSync } from '../models/file-hash.js';
import { ModelFileError } from '../models/gguf-header.js';
import type { ModelFacts } from '../models/model-facts.js';

interface ModelHashesOptions {
  readonly hashes: FileHashes;
  /** Called when `hashOf` may return another hash. */
  readonly onChange: () => void;
  /** Called when the background hashing ended with an error. */
  readonly onFailure: (error: unknown) => void;
  /** Called when files turned out to have another content than before. */
  readonly onReplaced: (model: ModelFiles) => void;
}

type ModelFiles = Pick<ModelFacts, 'id' | 'path' | 'files'>;

export interface HashedModel extends ModelFiles {
  /** Hash of the pulled model. Undefined: any file is served. */
  readonly expected?: string | undefined;
}

/** Delay after a file changed while it was hashed. */
const RETRY_MS = 10_000;
/** Delay after a read error. Longer, because each attempt may read most of a large file. */
const READ_ERROR_RETRY_MS = 5 * 60_000;

interface StampedHash {
  /** Read before the hashing. Null: a file could not be read. */
  readonly stamps: string | null;
  /** Null: not known. */
  readonly sha256: string | null;
}

export class ModelHashes {
  readonly #options: ModelHashesOptions;
  #models: readonly HashedModel[] = [];
  /** Results of the hashing; null if it failed. Key: `filesKey`, because another projector changes the hash. */
  readonly #hashed = new Map<string, StampedHash>();
  /** Hash found last, at first the expected one. Key: `filesKey`. */
  readonly #lastSha256 = new Map<string, string>();
  /** Files with which the model's engine was started. Key: model id. */
  readonly #started = new Map<string, StampedHash>();
  /** Whether `onChange` is due for a hash that no longer applies. */
  #hasDroppedHash = false;
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
    for (const map of [this.#hashed, this.#lastSha256]) for (const key of [...map.keys()]) if (!keys.has(key)) map.delete(key);
    for (const model of models) if (model.expected !== undefined) this.#lastSha256.set(filesKey(model), model.expected);
    this.#hash();
  }

  /**
   * Returns the hash of a model's current files. Null: not computed yet, or the hashing failed.
   *
   * @param isLoaded Whether an engine has loaded the model. Then also null unless the engine was started with files of this hash.
   */
  hashOf(model: ModelFiles, isLoaded: boolean): string | null {
    const key = filesKey(model);
    const hashed = this.#hashed.get(key);
    if (hashed === undefined) return null;
    const stamps = readStampsSync(model.files);
    if (stamps !== hashed.stamps) {
      this.#hashed.delete(key);
      this.#hasDroppedHash ||= hashed.sha256 !== null;
      this.#hash();
      return null;
    }
    return isLoaded && this.#started.get(model.id)?.sha256 !== hashed.sha256 ? null : hashed.sha256;
  }

  /**
   * Notes the files with which an engine is about to start, and checks the hash of a pulled model.
   *
   * @param expected Hash of the pulled model; undefined: any file is served.
   * @throws {ModelFileError} The files have another hash.
   */
  async beforeStart(model: ModelFiles, expected: string | undefined, signal: AbortSignal): Promise<void> {
    const stamps = readStampsSync(model.files);
    const hashed = this.#hashed.get(filesKey(model));
    this.#started.set(model.id, { stamps, sha256: hashed?.stamps === stamps ? hashed.sha256 : null });
    if (expected === undefined) return;
    if ((await this.#options.hashes.hashModel(model.files, signal)) !== expected) {
      throw new ModelFileError(`the file ${model.path} has changed since the download; pull the model again`);
    }
    this.#setHashed(model, { stamps, sha256: expected });
  }

  /** Cancels a delayed hashing. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#retry?.timer);
  }

  #setHashed(model: ModelFiles, hashed: StampedHash): void {
    const key = filesKey(model);
    this.#hashed.set(key, hashed);
    if (hashed.sha256 !== null) {
      const before = this.#lastSha256.get(key) ?? hashed.sha256;
      this.#lastSha256.set(key, hashed.sha256);
      if (before !== hashed.sha256) this.#options.onReplaced(model);
    }
    if (this.#started.get(model.id)?.stamps === hashed.stamps) this.#started.set(model.id, hashed);
  }

  /** If the hashing runs already, it begins again at its end. */
  #hash(): void {
    this.#mustRunAgain = true;
    if (!this.#isHashing) this.#hashAll().catch(this.#options.onFailure);
  }

  /** Hashes one model at a time. */
  async #hashAll(): Promise<void> {
    this.#isHashing = true;
    try {
      // The caller of `hashOf` may be assembling offers; `onChange` comes after them.
      await null;
      while (this.#mustRunAgain) {
        this.#mustRunAgain = false;
        if (this.#hasDroppedHash) {
          this.#hasDroppedHash = false;
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
    if (this.#hashed.has(key)) return;
    const stamps = readStampsSync(model.files);
    // An unreadable file also fails at loading, which is reported to the owner.
    const sha256 = await this.#options.hashes.hashModel(model.files).catch(() => null);
    // `beforeStart` may have hashed the files meanwhile.
    if (this.#hashed.has(key)) return;
    if (readStampsSync(model.files) !== stamps) {
      this.#hashLater(RETRY_MS);
      return;
    }
    this.#setHashed(model, { stamps, sha256 });
    if (sha256 === null) this.#hashLater(READ_ERROR_RETRY_MS);
    else this.#options.onChange();
  }

  /** Also tries models again whose hashing failed. An earlier retry replaces a later one. */
  #hashLater(delayMs: number): void {
    const at = performance.now() + delayMs;
    if (this.#isClosed || (this.#retry !== null && this.#retry.at <= at)) return;
    clearTimeout(this.#retry?.timer);
    const timer = setTimeout(() => {
      this.#retry = null;
      for (const [key, { sha256 }] of [...this.#hashed]) if (sha256 === null) this.#hashed.delete(key);
      this.#hash();
    }, delayMs);
    timer.unref();
    this.#retry = { timer, at };
  }
}

function filesKey({ files }: ModelFiles): string {
  return files.join('\n');
}
