/** `RotatingFile`: a log of bounded size in the files `NAME`, `NAME.1` (older) and so on. Writes synchronously, so that no line is lost at exit. */
import { closeSync, fstatSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';

interface RotatingFileOptions {
  readonly path: string;
  readonly maxBytes?: number;
  readonly maxRotated?: number;
}

const MAX_BYTES = 8 << 20;
const MAX_ROTATED = 4;

export class RotatingFile {
  #fd: number;
  #bytes: number;
  /** Lines lost to write errors. */
  lost = 0;

  /** Throws if the file cannot be opened. */
  constructor(private readonly options: RotatingFileOptions) {
    this.#fd = openSync(options.path, 'a', 0o600);
    this.#bytes = fstatSync(this.#fd).size;
  }

  write(line: string): void {
    try {
      if (this.#bytes > 0 && this.#bytes + line.length > (this.options.maxBytes ?? MAX_BYTES)) this.#rotate();
      this.#bytes += writeSync(this.#fd, line);
    } catch {
      this.lost++;
    }
  }

  close(): void {
    closeSync(this.#fd);
  }

  #rotate(): void {
    const { path, maxRotated = MAX_ROTATED } = this.options;
    rmSync(`${path}.${maxRotated}`, { force: true });
    for (let number = maxRotated; number > 0; number--) {
      try {
        renameSync(number === 1 ? path : `${path}.${number - 1}`, `${path}.${number}`);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      }
    }
    const fresh = openSync(path, 'a', 0o600);
    closeSync(this.#fd);
    this.#fd = fresh;
    this.#bytes = fstatSync(fresh).size;
  }
}
