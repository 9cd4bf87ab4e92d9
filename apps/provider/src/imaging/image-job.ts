/** `ImageJob`: the daemon's handle of a job in the image process. A cancel takes effect before the next step. */
import type { ImageJobEnd } from './messages.js';

/** End of a job that did not finish. */
export class ImageJobError extends Error {
  constructor(readonly end: Exclude<ImageJobEnd, { kind: 'finished' }>) {
    super(`the engine ended the image job: ${end.kind}`);
    this.name = 'ImageJobError';
  }
}

interface GeneratedImages {
  readonly images: readonly Uint8Array[];
  readonly promptTokens: number;
}

interface ImageProgress {
  /** Number of finished images. */
  readonly image: number;
  readonly step: number;
  readonly steps: number;
}

/** Progress is reported once per second, because the process is silent during a step. */
const PROGRESS_EVERY_MS = 1000;

export class ImageJob {
  /** Called at every step. */
  onProgress: (progress: ImageProgress) => void = () => {};
  readonly #images: Uint8Array[] = [];
  readonly #since = performance.now();
  #promptTokens = 0;
  #hasEnded = false;
  #settle: (end: ImageJobEnd) => void = () => {};
  readonly #end: Promise<ImageJobEnd>;

  constructor(private readonly command: (command: 'cancel') => void) {
    this.#end = new Promise((resolve) => (this.#settle = resolve));
  }

  /** Seconds since the job was created, not steps done: a single step may exceed the coordinator's stall timeout. */
  get workCount(): number {
    return Math.floor((performance.now() - this.#since) / PROGRESS_EVERY_MS);
  }

  /** If the engine did not finish, overwrites the finished images and throws {@link ImageJobError}. */
  async result(): Promise<GeneratedImages> {
    const end = await this.#end;
    if (end.kind === 'finished') return { images: this.#images, promptTokens: this.#promptTokens };
    for (const image of this.#images) image.fill(0);
    throw new ImageJobError(end);
  }

  cancel(): void {
    if (!this.#hasEnded) this.command('cancel');
  }

  /** Called by `ImageEngine` only, like the methods below. */
  promptRead(promptTokens: number): void {
    this.#promptTokens = promptTokens;
  }

  step(progress: ImageProgress): void {
    this.onProgress(progress);
  }

  push(image: Uint8Array): void {
    this.#images.push(image);
  }

  end(end: ImageJobEnd): void {
    this.#hasEnded = true;
    this.#settle(end);
  }
}
