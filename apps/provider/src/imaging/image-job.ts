/**
 * One request for images as the daemon sees it: steps are counted, images collected, and handed out when all are there.
 * Cancelling it stops the engine before its next step.
 */
import type { DrawingEnd } from './messages.js';

/** What the engine answered where it did not finish. */
export class DrawingError extends Error {
  constructor(readonly end: Exclude<DrawingEnd, { kind: 'finished' }>) {
    super(`the engine ended the drawing: ${end.kind}`);
    this.name = 'DrawingError';
  }
}

export interface Drawn {
  readonly images: readonly Uint8Array[];
  readonly promptTokens: number;
}

export interface DrawingProgress {
  /** Images before this one are done. */
  readonly image: number;
  readonly step: number;
  readonly steps: number;
}

/** A process that draws says nothing during a step; that it lives is taken for work. */
const SIGN_EVERY_MS = 1000;

export class Drawing {
  /** Called at every step. */
  onProgress: (progress: DrawingProgress) => void = () => {};
  readonly #images: Uint8Array[] = [];
  readonly #since = performance.now();
  #promptTokens = 0;
  #ended = false;
  #settle: (end: DrawingEnd) => void = () => {};
  readonly #end: Promise<DrawingEnd>;

  constructor(private readonly command: (command: 'cancel') => void) {
    this.#end = new Promise((resolve) => (this.#settle = resolve));
  }

  /**
   * Grows while the engine works on this drawing or on those before it. Steps of large models take longer than a coordinator
   * waits for a word; a process that hangs in one is ended, and the drawing with it (see image-process.ts).
   */
  get signsOfWork(): number {
    return Math.floor((performance.now() - this.#since) / SIGN_EVERY_MS);
  }

  /** Throws {@link DrawingError} when the engine did not finish; nothing of the images is kept then. */
  async result(): Promise<Drawn> {
    const end = await this.#end;
    if (end.kind === 'finished') return { images: this.#images, promptTokens: this.#promptTokens };
    for (const image of this.#images) image.fill(0);
    throw new DrawingError(end);
  }

  cancel(): void {
    if (!this.#ended) this.command('cancel');
  }

  /** For the engine client only, as are the others below. */
  read(promptTokens: number): void {
    this.#promptTokens = promptTokens;
  }

  step(progress: DrawingProgress): void {
    this.onProgress(progress);
  }

  push(image: Uint8Array): void {
    this.#images.push(image);
  }

  end(end: DrawingEnd): void {
    this.#ended = true;
    this.#settle(end);
  }
}
