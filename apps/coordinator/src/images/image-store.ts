/** `ImageStore` keeps encrypted images on disk until they expire, in limited space. Only an image's URL contains its key. */
import { mkdir, readdir, readFile, rename, rm, stat, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Semaphore } from '../semaphore.js';
import {
  decryptImage,
  ENCRYPTION_OVERHEAD_BYTES,
  encryptImage,
  type ImageFileType,
  type ImageToken,
  newImageFileName,
  readImageFileName,
} from './image-token.js';

interface ImageStoreOptions {
  readonly directory: string;
  /** Maximum bytes of stored images and of received parts of unfinished images together. */
  readonly maxBytes: number;
  /** Maximum percentage of `maxBytes` for one account, and for one provider's unfinished images. Default 100. */
  readonly sharePercent?: number;
  /** Lifetime of an image URL from {@link ImageStore.allocate}, in milliseconds. */
  readonly lifetimeMs: number;
  /** HMAC key of the tokens in image URLs: 32 bytes that must not change over restarts. */
  readonly macKey: Uint8Array;
  readonly now: () => number;
  readonly onError: (error: unknown) => void;
}

export type FoundImage =
  | {
      readonly kind: 'found';
      readonly bytes: Uint8Array;
      readonly fileType: ImageFileType;
      readonly expiresAt: number;
      readonly imageId: string;
    }
  /** The image has expired. */
  | { readonly kind: 'gone' }
  /** The URL was not issued here, or the file is missing or damaged. */
  | { readonly kind: 'unknown' };

/** File names and disk space for the images of one job. Only received bytes take space. The caller must call `close`. */
export interface ImageAllocation {
  /** Last path segments of the image URLs, one per image. */
  readonly fileNames: readonly string[];
  readonly expiresAt: number;
  /** Reserves space for bytes received from a provider. Returns false if no space is left, in total or for this provider. */
  holdBytes(bytes: number, providerId: string): boolean;
  /** Releases the reserved bytes when an attempt has ended. */
  releaseBytes(): void;
  /** Stores the images, one per file name, and closes the allocation. If one fails, deletes the others and rejects. */
  store(images: readonly Uint8Array[]): Promise<void>;
  /** Deletes the stored images. */
  deleteStored(): Promise<void>;
  /** Releases unused space. */
  close(): void;
}

interface Stored {
  readonly bytes: number;
  readonly expiresAt: number;
  /** Null if stored by an earlier process. */
  readonly accountId: string | null;
}

/** Interval at which expired images are deleted, in milliseconds. */
const SWEEP_MS = 15_000;
const STORED_FILE_NAME = /^(\d{1,12})-([0-9a-f]{64})$/;

export class ImageStore {
  readonly #options: ImageStoreOptions;
  /** Key: name of the encrypted file. */
  readonly #stored = new Map<string, Stored>();
  readonly #reads = new Semaphore(8);
  /** Limits the memory for images from peers. Higher than for reads, because a peer may be slow. */
  readonly #fetches = new Semaphore(32);
  readonly #sweeper: NodeJS.Timeout;
  #bytes = 0;
  /** Bytes received from providers for unfinished images. */
  #heldBytes = 0;
  readonly #heldByProvider = new Map<string, number>();
  /** Stored bytes since the start, plus the maximum that running jobs can add. Key: account id. */
  readonly #bytesByAccount = new Map<string, number>();
  /** Fetches the encrypted file of an image from another coordinator. Set by the cluster, null on a single coordinator. */
  fetchFromPeers: ((name: string) => Promise<Uint8Array | null>) | null = null;

  private constructor(options: ImageStoreOptions) {
    this.#options = options;
    this.#sweeper = setInterval(() => void this.sweep().catch(options.onError), SWEEP_MS);
    this.#sweeper.unref();
  }

  /** Opens a directory and lists its images. */
  static async open(options: ImageStoreOptions): Promise<ImageStore> {
    const store = new ImageStore(options);
    try {
      await store.#loadDirectory();
      return store;
    } catch (error) {
      store.close();
      throw error;
    }
  }

  get usage(): { readonly images: number; readonly bytes: number; readonly heldBytes: number } {
    return { images: this.#stored.size, bytes: this.#bytes, heldBytes: this.#heldBytes };
  }

  get maxBytes(): number {
    return this.#options.maxBytes;
  }

  /** Null if there is no space, or the account would exceed its share. An account without other images may exceed its share. */
  allocate(count: number, fileType: ImageFileType, maxBytesEach: number, accountId = ''): ImageAllocation | null {
    const { maxBytes, macKey, lifetimeMs, now } = this.#options;
    const reserved = count * (maxBytesEach + ENCRYPTION_OVERHEAD_BYTES);
    if (this.#bytes + this.#heldBytes + reserved > maxBytes) return null;
    const used = this.#bytesByAccount.get(accountId) ?? 0;
    if (used > 0 && used + reserved > this.#share) return null;
    addTo(this.#bytesByAccount, accountId, reserved);
    const expiresAt = now() + lifetimeMs;
    const fileNames = Array.from({ length: count }, () => newImageFileName(macKey, fileType, expiresAt));
    const tokens = fileNames.map((fileName) => this.#readToken(fileName) as ImageToken);
    let isClosed = false;
    const { holdBytes, releaseBytes } = this.#newHold();
    const close = (): void => {
      if (isClosed) return;
      isClosed = true;
      releaseBytes();
      addTo(this.#bytesByAccount, accountId, -reserved);
    };
    const deleteStored = async (): Promise<void> => {
      await Promise.all(tokens.map((token) => this.#remove(storedFileName(token))));
    };
    return {
      fileNames,
      expiresAt,
      holdBytes: (bytes, providerId) => !isClosed && holdBytes(bytes, providerId),
      releaseBytes,
      store: async (images) => {
        if (isClosed || images.length !== count) throw new Error('the allocation is closed, or was made for another number of images');
        const writing = images.map((image, index) => this.#write(tokens[index] as ImageToken, image, accountId));
        const written = await Promise.allSettled(writing);
        close();
        const failure = written.find((result) => result.status === 'rejected');
        if (failure === undefined) return;
        await deleteStored();
        throw failure.reason;
      },
      deleteStored,
      close,
    };
  }

  /** Counts the bytes that a provider has sent for one job. Bytes of another provider replace those of the previous one. */
  #newHold(): Pick<ImageAllocation, 'holdBytes' | 'releaseBytes'> {
    let held: { readonly providerId: string; bytes: number } | null = null;
    const releaseBytes = (): void => {
      if (held === null) return;
      this.#heldBytes -= held.bytes;
      addTo(this.#heldByProvider, held.providerId, -held.bytes);
      held = null;
    };
    const holdBytes = (bytes: number, providerId: string): boolean => {
      if (this.#bytes + this.#heldBytes + bytes > this.#options.maxBytes) return false;
      if (held !== null && held.providerId !== providerId) releaseBytes();
      held ??= { providerId, bytes: 0 };
      const heldOfProvider = this.#heldByProvider.get(providerId) ?? 0;
      // A provider may always complete one job.
      if (heldOfProvider > held.bytes && heldOfProvider + bytes > this.#share) return false;
      held.bytes += bytes;
      this.#heldBytes += bytes;
      addTo(this.#heldByProvider, providerId, bytes);
      return true;
    };
    return { holdBytes, releaseBytes };
  }

  /** Finds and decrypts an image by the last path segment of its URL, here or at another coordinator. */
  async find(fileName: string): Promise<FoundImage> {
    const token = this.#readToken(fileName);
    if (token === null) return { kind: 'unknown' };
    if (token.expiresAt <= this.#options.now()) return { kind: 'gone' };
    const name = storedFileName(token);
    if (this.#stored.has(name)) {
      // A missing file was deleted after its expiry meanwhile.
      return this.#reads.run(async () => this.#decrypt(await this.#readFile(name), token, 'gone'));
    }
    const { fetchFromPeers } = this;
    if (fetchFromPeers === null) return { kind: 'unknown' };
    return this.#fetches.run(async () => this.#decrypt(await fetchFromPeers(name), token, 'unknown'));
  }

  /** The encrypted file of an image, for another coordinator. Null if not stored here, or expired. */
  async readStored(name: string): Promise<Uint8Array | null> {
    const stored = this.#stored.get(name);
    if (stored === undefined || stored.expiresAt <= this.#options.now()) return null;
    return this.#reads.run(() => this.#readFile(name));
  }

  #decrypt(encrypted: Uint8Array | null, token: ImageToken, missing: 'gone' | 'unknown'): FoundImage {
    if (encrypted === null) return { kind: missing };
    const bytes = decryptImage(encrypted, token);
    if (bytes === null) {
      this.#options.onError(new Error('a stored image is damaged'));
      return { kind: 'unknown' };
    }
    const { fileType, expiresAt, imageId } = token;
    return { kind: 'found', bytes, fileType, expiresAt, imageId };
  }

  /** Deletes expired images. */
  async sweep(): Promise<void> {
    const now = this.#options.now();
    const over = [...this.#stored].filter(([, { expiresAt }]) => expiresAt <= now);
    await Promise.all(over.map(([name]) => this.#remove(name)));
  }

  close(): void {
    clearInterval(this.#sweeper);
  }

  get #share(): number {
    return (this.#options.maxBytes * (this.#options.sharePercent ?? 100)) / 100;
  }

  #readToken(fileName: string): ImageToken | null {
    return readImageFileName(this.#options.macKey, fileName);
  }

  async #readFile(name: string): Promise<Uint8Array | null> {
    try {
      return await readFile(join(this.#options.directory, name));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
  }

  async #loadDirectory(): Promise<void> {
    const { directory } = this.#options;
    await mkdir(directory, { recursive: true, mode: 0o700 });
    for (const name of await readdir(directory)) {
      const [, seconds] = STORED_FILE_NAME.exec(name) ?? [];
      // Partial files of an earlier process are of no use.
      if (name.endsWith('.part')) await rm(join(directory, name), { force: true });
      else if (seconds !== undefined)
        this.#register(name, { bytes: (await stat(join(directory, name))).size, expiresAt: 1000 * Number(seconds), accountId: null });
    }
    await this.sweep();
  }

  async #write(token: ImageToken, image: Uint8Array, accountId: string): Promise<void> {
    const name = storedFileName(token);
    const path = join(this.#options.directory, name);
    const encrypted = encryptImage(image, token);
    try {
      await writeFile(`${path}.part`, encrypted, { mode: 0o600 });
      await rename(`${path}.part`, path);
    } catch (error) {
      await rm(`${path}.part`, { force: true });
      throw error;
    }
    this.#register(name, { bytes: encrypted.length, expiresAt: token.expiresAt, accountId });
  }

  #register(name: string, stored: Stored): void {
    this.#stored.set(name, stored);
    this.#bytes += stored.bytes;
    if (stored.accountId !== null) addTo(this.#bytesByAccount, stored.accountId, stored.bytes);
  }

  async #remove(name: string): Promise<void> {
    const stored = this.#stored.get(name);
    if (stored === undefined) return;
    this.#stored.delete(name);
    try {
      await unlink(join(this.#options.directory, name));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
        // The file still exists, so the next sweep tries again.
        this.#stored.set(name, stored);
        throw error;
      }
    }
    this.#bytes -= stored.bytes;
    if (stored.accountId !== null) addTo(this.#bytesByAccount, stored.accountId, -stored.bytes);
  }
}

/** Adds bytes to an entry, and removes an entry that becomes zero. */
function addTo(sums: Map<string, number>, name: string, bytes: number): void {
  const sum = (sums.get(name) ?? 0) + bytes;
  if (sum === 0) sums.delete(name);
  else sums.set(name, sum);
}

/** Contains the expiry time, so that images can be listed after a restart without reading them. */
function storedFileName({ expiresAt, imageId }: ImageToken): string {
  return `${expiresAt / 1000}-${imageId}`;
}
