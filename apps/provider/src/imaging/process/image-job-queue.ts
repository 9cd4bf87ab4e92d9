/** `ImageJobQueue` runs image jobs one after another, sends their images to the daemon and overwrites the buffers. */
import { randomInt } from 'node:crypto';
import type { FromImageEngine, ImageJobEnd, ImageRequest } from '../messages.js';
import type { ImageBackend } from './image-backend.js';
import { encodeImage } from './image-codec.js';

interface Task {
  readonly job: number;
  readonly request: ImageRequest;
  readonly abort: AbortController;
}

export class ImageJobQueue {
  readonly #waiting: Task[] = [];
  #current: Task | null = null;

  constructor(
    private readonly backend: ImageBackend,
    private readonly send: (message: FromImageEngine, sent?: () => void) => void,
  ) {}

  add(job: number, request: ImageRequest): void {
    this.#waiting.push({ job, request, abort: new AbortController() });
    if (this.#current === null) void this.#work();
  }

  /** A running job ends before its next step. */
  cancel(job: number): void {
    if (this.#current?.job === job) this.#current.abort.abort();
    const at = this.#waiting.findIndex((task) => task.job === job);
    if (at < 0) return;
    this.#waiting.splice(at, 1);
    this.send({ type: 'ended', job, end: { kind: 'cancelled' } });
  }

  async #work(): Promise<void> {
    for (;;) {
      const task = this.#waiting.shift() ?? null;
      this.#current = task;
      if (task === null) return;
      this.send({ type: 'ended', job: task.job, end: await this.#generate(task) });
    }
  }

  /** Failures are returned as the end of the job; never rejects. */
  async #generate({ job, request, abort: { signal } }: Task): Promise<ImageJobEnd> {
    const { count, encoding, quality, seed, ...rest } = request;
    const firstSeed = seed === null ? BigInt(randomInt(2 ** 47)) : BigInt(seed);
    try {
      this.send({ type: 'reading', job, promptTokens: this.backend.promptTokens(request.prompt) });
      for (let image = 0; image < count; image++) {
        const onStep = (step: number): void => this.send({ type: 'step', job, image, step, steps: request.steps });
        const picture = await this.backend.generate({ ...rest, seed: String(firstSeed + BigInt(image)) }, onStep, signal);
        signal.throwIfAborted();
        const bytes = await encodeImage(picture, encoding, quality);
        picture.rgb.fill(0);
        await new Promise<void>((resolve) => this.send({ type: 'image', job, bytes }, resolve));
        bytes.fill(0);
      }
      return { kind: 'finished' };
    } catch (error) {
      if (signal.aborted) return { kind: 'cancelled' };
      return { kind: 'engine_failed', message: error instanceof Error ? error.message : 'unknown' };
    }
  }
}
