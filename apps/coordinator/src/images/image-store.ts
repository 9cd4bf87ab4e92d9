/**
 * Images that wait to be fetched: a bounded number of bytes on this disk, each image sealed under a key that only its address
 * holds, gone after its time. What lies here can be read by nobody who does not have the address. A restart keeps all of it.
 */
import { mkdir, readdir, readFile, rename, rm, stat, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { FewAtOnce } from './few-at-once.js';
import { type ImageAddress, type ImageFileFormat, newImageFile, readImageFile } from './image-address.js';
import { openImage, SEALING_BYTES, sealImage } from './sealed-image.js';

export interface ImageStoreOptions {
  readonly directory: string;
  /** Bytes on the disk, those included that running jobs may come to need. */
  readonly mostBytes: number;
  /** How long an address is good, from the request on, in milliseconds. */
  readonly lifetimeMs: number;
  /** Makes addresses that are told from invented ones; 32 bytes that outlive this process. */
  readonly codeKey: Uint8Array;
  readonly now: () => number;
  readonly onError: (error: unknown) => void;
}

export type FoundImage =
  | {
      readonly kind: 'found';
      readonly bytes: Uint8Array;
      readonly format: ImageFileFormat;
      readonly expiresAt: number;
      readonly storedName: string;
    }
  /** Its time is over. */
  | { readonly kind: 'gone' }
  /** There never was such an image, or it was lost. */
  | { readonly kind: 'unknown' };

/** Room and addresses for the images of one job. Whoever gets one ends it. */
export interface Allotment {
  /** Last parts of the addresses, one for each image. */
  readonly files: readonly string[];
  readonly expiresAt: number;
  /** Stores the images, one for each address. Rejects when that fails; then none is stored. */
  keep(images: readonly Uint8Array[]): Promise<void>;
  /** Removes what was stored. */
  drop(): Promise<void>;
  /** Gives back the room that is not used. */
  end(): void;
}

interface Stored {
  readonly bytes: number;
  readonly expiresAt: number;
}

/** Expired images are removed this often, in milliseconds. */
const SWEEP_MS = 15_000;
const STORED_NAME = /^(\d{1,12})-([0-9a-f]{64})$/;

export class ImageStore {
  readonly #options: ImageStoreOptions;
  readonly #stored = new Map<string, Stored>();
  readonly #reads = new FewAtOnce(8);
  readonly #sweeper: NodeJS.Timeout;
  #bytes = 0;
  /** Promised to running jobs. */
  #heldBytes = 0;

  private constructor(options: ImageStoreOptions) {
    this.#options = options;
    this.#sweeper = setInterval(() => void this.sweep().catch(options.onError), SWEEP_MS);
    this.#sweeper.unref();
  }

  /** Opens a directory and takes in what lies there. */
  static async open(options: ImageStoreOptions): Promise<ImageStore> {
    const store = new ImageStore(options);
    try {
      await store.#takeIn();
      return store;
    } catch (error) {
      store.close();
      throw error;
    }
  }

  /** Bytes on the disk, and those promised to running jobs. */
  get usage(): { readonly images: number; readonly bytes: number; readonly heldBytes: number } {
    return { images: this.#stored.size, bytes: this.#bytes, heldBytes: this.#heldBytes };
  }

  /** Room for so many images of at most so many bytes each, and their addresses. Null: there is no room now. */
  allot(count: number, format: ImageFileFormat, mostBytesEach: number): Allotment | null {
    const { mostBytes, codeKey, lifetimeMs, now } = this.#options;
    const held = count * (mostBytesEach + SEALING_BYTES);
    if (this.#bytes + this.#heldBytes + held > mostBytes) return null;
    this.#heldBytes += held;
    const expiresAt = now() + lifetimeMs;
    const files = Array.from({ length: count }, () => newImageFile(codeKey, format, expiresAt));
    const addresses = files.map((file) => this.#read(file) as ImageAddress);
    let ended = false;
    const end = (): void => {
      if (ended) return;
      ended = true;
      this.#heldBytes -= held;
    };
    const drop = async (): Promise<void> => {
      await Promise.all(addresses.map((address) => this.#remove(fileNameOf(address))));
    };
    return {
      files,
      expiresAt,
      keep: async (images) => {
        if (ended || images.length !== count) throw new Error('these images have no room here');
        const written = await Promise.allSettled(images.map((image, index) => this.#write(addresses[index] as ImageAddress, image)));
        end();
        const failure = written.find((one) => one.status === 'rejected');
        if (failure === undefined) return;
        await drop();
        throw failure.reason;
      },
      drop,
      end,
    };
  }

  /** What the last part of an address leads to. */
  async find(file: string): Promise<FoundImage> {
    const address = this.#read(file);
    if (address === null) return { kind: 'unknown' };
    if (address.expiresAt <= this.#options.now()) return { kind: 'gone' };
    const name = fileNameOf(address);
    if (!this.#stored.has(name)) return { kind: 'unknown' };
    return this.#reads.run(async () => {
      const sealed = await this.#readFile(name);
      // It was removed meanwhile, which happens when its time is over.
      if (sealed === null) return { kind: 'gone' };
      const bytes = openImage(sealed, address);
      if (bytes === null) {
        this.#options.onError(new Error('a stored image is damaged'));
        return { kind: 'unknown' };
      }
      const { format, expiresAt, storedName } = address;
      return { kind: 'found', bytes, format, expiresAt, storedName };
    });
  }

  /** Removes what is over its time. */
  async sweep(): Promise<void> {
    const now = this.#options.now();
    const over = [...this.#stored].filter(([, { expiresAt }]) => expiresAt <= now);
    await Promise.all(over.map(([name]) => this.#remove(name)));
  }

  close(): void {
    clearInterval(this.#sweeper);
  }

  #read(file: string): ImageAddress | null {
    return readImageFile(this.#options.codeKey, file);
  }

  async #readFile(name: string): Promise<Uint8Array | null> {
    try {
      return await readFile(join(this.#options.directory, name));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
  }

  async #takeIn(): Promise<void> {
    const { directory } = this.#options;
    await mkdir(directory, { recursive: true, mode: 0o700 });
    for (const name of await readdir(directory)) {
      const [, seconds] = STORED_NAME.exec(name) ?? [];
      // What was being written when the process ended is of no use.
      if (name.endsWith('.part')) await rm(join(directory, name), { force: true });
      else if (seconds !== undefined)
        this.#note(name, { bytes: (await stat(join(directory, name))).size, expiresAt: 1000 * Number(seconds) });
    }
    await this.sweep();
  }

  async #write(address: ImageAddress, image: Uint8Array): Promise<void> {
    const name = fileNameOf(address);
    const path = join(this.#options.directory, name);
    const sealed = sealImage(image, address);
    try {
      await writeFile(`${path}.part`, sealed, { mode: 0o600 });
      await rename(`${path}.part`, path);
    } catch (error) {
      await rm(`${path}.part`, { force: true });
      throw error;
    }
    this.#note(name, { bytes: sealed.length, expiresAt: address.expiresAt });
  }

  #note(name: string, stored: Stored): void {
    this.#stored.set(name, stored);
    this.#bytes += stored.bytes;
  }

  async #remove(name: string): Promise<void> {
    const stored = this.#stored.get(name);
    if (stored === undefined) return;
    this.#stored.delete(name);
    try {
      await unlink(join(this.#options.directory, name));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
        // Its bytes are still there; the next sweep tries again.
        this.#stored.set(name, stored);
        throw error;
      }
    }
    this.#bytes -= stored.bytes;
  }
}

/** The end stands in the name, so that a sweep needs no look into the file. */
function fileNameOf({ expiresAt, storedName }: ImageAddress): string {
  return `${expiresAt / 1000}-${storedName}`;
}
