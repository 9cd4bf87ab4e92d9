/** `Embedding`: the daemon's handle of an embedding request in the engine process. A cancel takes effect after the current input. */
import { GenerationError } from './generation.js';
import type { Ended } from './messages.js';

export interface Vectors {
  /** Vector per input, in input order: base64 of little-endian 32-bit floats. */
  readonly vectors: readonly string[];
  readonly promptTokens: number;
}

export class Embedding {
  readonly #vectors: string[] = [];
  #tokens = 0;
  #hasEnded = false;
  #settle: (ended: Ended) => void = () => {};
  readonly #end: Promise<Ended>;

  constructor(
    readonly job: number,
    private readonly command: (command: 'cancel') => void,
  ) {
    this.#end = new Promise((resolve) => (this.#settle = resolve));
  }

  /** Number of inputs embedded so far. */
  get workCount(): number {
    return this.#vectors.length;
  }

  /** Throws {@link GenerationError} when the engine did not finish. */
  async result(): Promise<Vectors> {
    const ended = await this.#end;
    if (ended.kind !== 'finished') throw new GenerationError(ended);
    return { vectors: this.#vectors, promptTokens: this.#tokens };
  }

  cancel(): void {
    if (!this.#hasEnded) this.command('cancel');
  }

  /** `push` and `end` are called by `Engine` only. */
  push(vector: string, tokens: number): void {
    this.#vectors.push(vector);
    this.#tokens += tokens;
  }

  end(ended: Ended): void {
    this.#hasEnded = true;
    this.#settle(ended);
  }
}
