/**
 * Images that wait to be fetched: a bounded number of bytes on this disk, each image sealed under a key that only its address
 * holds, gone after its time. What lies here can be read by nobody who does not have the address. A restart keeps all of it.
 */
import { mkdir, readdir, readFile, rename, rm, stat, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type ImageAddress, type ImageFileFormat, newImageFile, readImageFile } from './image-address.js';
import { openImage, SEALING_BYTES, sealImage } from './sealed-image.js';
import { Semaphore } from './semaphore.js';

export interface ImageStoreOptions {
  readonly directory: string;
  /** Bytes on the disk, and those that machines have sent of images which are not finished. */
  readonly maxBytes: number;
  /** Part of it that one account may fill, and that unfinished images of one machine may take, in percent. 100 by default. */
  readonly sharePercent?: number;
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

/**
 * Addresses for the images of one job, and the room that they take. Only what a machine has sent takes room: one that takes jobs
 * and never answers blocks nobody. Whoever gets an allocation ends it.
 */
export interface ImageAllocation {
  /** Last parts of the addresses, one for each image. */
  readonly files: readonly string[];
  readonly expiresAt: number;
  /** Takes room for bytes that have come from a machine. False: there is none, and the job cannot be finished. */
  take(bytes: number, machine: string): boolean;
  /** Gives back what was taken: the machine's part in the job is over. */
  giveBack(): void;
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
  /** Null: it was stored before this process began. */
  readonly accountId: string | null;
}

/** Expired images are removed this often, in milliseconds. */
const SWEEP_MS = 15_000;
const STORED_NAME = /^(\d{1,12})-([0-9a-f]{64})$/;

export class ImageStore {
  readonly #options: ImageStoreOptions;
  readonly #stored = new Map<string, Stored>();
  readonly #reads = new Semaphore(8);
  readonly #sweeper: NodeJS.Timeout;
  #bytes = 0;
  /** Of images that are not finished. */
  #heldBytes = 0;
  readonly #heldByMachine = new Map<string, number>();
  /** What an account has stored, and the largest that its running jobs can come to. */
  readonly #ofAccounts = new Map<string, number>();

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

  /** Bytes on the disk, and those of images that are not finished. */
  get usage(): { readonly images: number; readonly bytes: number; readonly heldBytes: number } {
    return { images: this.#stored.size, bytes: this.#bytes, heldBytes: this.#heldBytes };
  }

  /**
   * Addresses for so many images of at most so many bytes each. Null: there is no room for them now, or the account's share is used
   * up. An account that has nothing here may always have one job.
   */
  allot(count: number, format: ImageFileFormat, maxBytesEach: number, accountId = ''): ImageAllocation | null {
    const { maxBytes, codeKey, lifetimeMs, now } = this.#options;
    const promised = count * (maxBytesEach + SEALING_BYTES);
    if (this.#bytes + this.#heldBytes + promised > maxBytes) return null;
    const used = this.#ofAccounts.get(accountId) ?? 0;
    if (used > 0 && used + promised > this.#share) return null;
    add(this.#ofAccounts, accountId, promised);
    const expiresAt = now() + lifetimeMs;
    const files = Array.from({ length: count }, () => newImageFile(codeKey, format, expiresAt));
    const addresses = files.map((file) => this.#read(file) as ImageAddress);
    let ended = false;
    let taken: { readonly machine: string; bytes: number } | null = null;
    const giveBack = (): void => {
      if (taken === null) return;
      this.#heldBytes -= taken.bytes;
      add(this.#heldByMachine, taken.machine, -taken.bytes);
      taken = null;
    };
    const take = (bytes: number, machine: string): boolean => {
      if (ended || this.#bytes + this.#heldBytes + bytes > maxBytes) return false;
      if (taken !== null && taken.machine !== machine) giveBack();
      taken ??= { machine, bytes: 0 };
      const ofMachine = this.#heldByMachine.get(machine) ?? 0;
      // A machine may always finish one job.
      if (ofMachine > taken.bytes && ofMachine + bytes > this.#share) return false;
      taken.bytes += bytes;
      this.#heldBytes += bytes;
      add(this.#heldByMachine, machine, bytes);
      return true;
    };
    const end = (): void => {
      if (ended) return;
      ended = true;
      giveBack();
      add(this.#ofAccounts, accountId, -promised);
    };
    const drop = async (): Promise<void> => {
      await Promise.all(addresses.map((address) => this.#remove(fileNameOf(address))));
    };
    return {
      files,
      expiresAt,
      take,
      giveBack,
      keep: async (images) => {
        if (ended || images.length !== count) throw new Error('these images have no room here');
        const writing = images.map((image, index) => this.#write(addresses[index] as ImageAddress, image, accountId));
        const written = await Promise.allSettled(writing);
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

  get #share(): number {
    return (this.#options.maxBytes * (this.#options.sharePercent ?? 100)) / 100;
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
        this.#note(name, { bytes: (await stat(join(directory, name))).size, expiresAt: 1000 * Number(seconds), accountId: null });
    }
    await this.sweep();
  }

  async #write(address: ImageAddress, image: Uint8Array, accountId: string): Promise<void> {
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
    this.#note(name, { bytes: sealed.length, expiresAt: address.expiresAt, accountId });
  }

  #note(name: string, stored: Stored): void {
    this.#stored.set(name, stored);
    this.#bytes += stored.bytes;
    if (stored.accountId !== null) add(this.#ofAccounts, stored.accountId, stored.bytes);
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
    if (stored.accountId !== null) add(this.#ofAccounts, stored.accountId, -stored.bytes);
  }
}

/** Names that have come to nothing are forgotten. */
function add(sums: Map<string, number>, name: string, bytes: number): void {
  const sum = (sums.get(name) ?? 0) + bytes;
  if (sum === 0) sums.delete(name);
  else sums.set(name, sum);
}

/** The end stands in the name, so that a sweep needs no look into the file. */
function fileNameOf({ expiresAt, storedName }: ImageAddress): string {
  return `${expiresAt / 1000}-${storedName}`;
}
