/** `Embedding`: the daemon's handle of one embedding request in the engine process. `Engine` creates it and feeds it. */
import { GenerationError } from './generation.js';
import type { Ended } from './messages.js';

export interface Vectors {
  /** One vector per input, in input order: base64 of little-endian 32-bit floats. */
  readonly vectors: readonly string[];
  readonly promptTokens: number;
}

export class Embedding {
  readonly #vectors: string[] = [];
  #tokens = 0;
  #hasEnded = false;
  #resolveEnd: (ended: Ended) => void = () => {};
  readonly #end: Promise<Ended>;

  constructor(
    readonly job: number,
    private readonly sendCommand: (command: 'cancel') => void,
  ) {
    this.#end = new Promise((resolve) => (this.#resolveEnd = resolve));
  }

  /** Number of inputs embedded so far: the progress counter for stall timeouts. */
  get workCount(): number {
    return this.#vectors.length;
  }

  /** Resolves when all inputs are embedded. Throws {@link GenerationError} if the engine ended the job earlier. */
  async result(): Promise<Vectors> {
    const ended = await this.#end;
    if (ended.kind !== 'finished') throw new GenerationError(ended);
    return { vectors: this.#vectors, promptTokens: this.#tokens };
  }

  /** Stops before the next input. */
  cancel(): void {
    if (!this.#hasEnded) this.sendCommand('cancel');
  }

  /** `push` and `end` are called by `Engine` only. */
  push(vector: string, tokens: number): void {
    this.#vectors.push(vector);
    this.#tokens += tokens;
  }

  end(ended: Ended): void {
    this.#hasEnded = true;
    this.#resolveEnd(ended);
  }
}
