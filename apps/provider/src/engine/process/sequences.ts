/**
 * The sequences that streams decode in. Each stream gets one that holds nothing: what an earlier prompt left behind would
 * answer faster to those who send the same beginning, and so tell one client what another one asked (docs/decisions/0005).
 * A waiting stream gets the next that is given back.
 */
import type { LlamaContext, LlamaContextSequence } from 'node-llama-cpp';
import type { StreamControl } from './stream.js';

export class Sequences {
  readonly #free: LlamaContextSequence[];
  readonly #waiting = new Set<(sequence: LlamaContextSequence | null) => void>();

  constructor(private readonly context: LlamaContext) {
    this.#free = Array.from({ length: context.totalSequences }, () => context.getSequence());
  }

  /** Takes an empty sequence, or null when the stream was cancelled while it waited for one. */
  async take(control: StreamControl): Promise<LlamaContextSequence | null> {
    const sequence = this.#free.pop() ?? (await this.#wait(control));
    if (sequence !== null && sequence.nextTokenIndex > 0) await sequence.clearHistory();
    return sequence;
  }

  give(sequence: LlamaContextSequence): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#free.push(sequence);
    else next(sequence);
  }

  /** Gives back a sequence whose state is not known, by putting a new one in its place. */
  async replace(sequence: LlamaContextSequence): Promise<void> {
    await sequence.dispose();
    this.give(this.context.getSequence());
  }

  #wait(control: StreamControl): Promise<LlamaContextSequence | null> {
    return new Promise((resolve) => {
      const settle = (sequence: LlamaContextSequence | null) => {
        this.#waiting.delete(settle);
        control.onCancel = null;
        resolve(sequence);
      };
      this.#waiting.add(settle);
      control.onCancel = () => settle(null);
    });
  }
}
