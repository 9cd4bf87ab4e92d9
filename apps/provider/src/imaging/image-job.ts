/** `ImageJob`: the daemon's handle of one job in the image process. `ImageEngine` creates it and feeds it. */
import type { ImageJobEnd } from './messages.js';

/** The image process ended a job without finishing it; `end` says why. */
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
  /** Finished steps of the next image. */
  readonly step: number;
  readonly steps: number;
}

export class ImageJob {
  /** Called after every step. The caller may replace it. */
  onProgress: (progress: ImageProgress) => void = () => {};
  readonly #images: Uint8Array[] = [];
  readonly #createdAt = performance.now();
  #promptTokens = 0;
  #hasEnded = false;
  #resolveEnd: (end: ImageJobEnd) => void = () => {};
  readonly #end: Promise<ImageJobEnd>;

  constructor(private readonly sendCommand: (command: 'cancel') => void) {
    this.#end = new Promise((resolve) => (this.#resolveEnd = resolve));
  }

  /** Progress counter for stall timeouts: seconds since the start instead of steps, because a step may exceed the timeout. */
  get workCount(): number {
    return Math.floor((performance.now() - this.#createdAt) / 1000);
  }

  /** Resolves to all images. If the job did not finish, overwrites those received and throws {@link ImageJobError}. */
  async result(): Promise<GeneratedImages> {
    const end = await this.#end;
    if (end.kind === 'finished') return { images: this.#images, promptTokens: this.#promptTokens };
    for (const image of this.#images) image.fill(0);
    throw new ImageJobError(end);
  }

  /** Stops before the next step. */
  cancel(): void {
    if (!this.#hasEnded) this.sendCommand('cancel');
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
    this.#resolveEnd(end);
  }
}
