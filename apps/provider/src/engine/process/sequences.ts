/**
 * The sequences that streams decode in. A stream takes the free one that already holds the longest beginning of its
 * prompt, and a waiting stream gets the next that is given back. Recurrent and sliding-window models cannot drop the
 * tail of what they hold, so theirs are cleared instead.
 */
import type { LlamaContext, LlamaContextSequence, Token } from 'node-llama-cpp';
import type { StreamControl } from './stream.js';

export interface TakenSequence {
  readonly sequence: LlamaContextSequence;
  /** How many tokens of the prompt it holds already; at least one is always left to decode. */
  readonly held: number;
}

export class Sequences {
  readonly #free: LlamaContextSequence[];
  readonly #waiting = new Set<(sequence: LlamaContextSequence | null) => void>();

  constructor(private readonly context: LlamaContext) {
    this.#free = Array.from({ length: context.totalSequences }, () => context.getSequence());
  }

  /**
   * Takes a sequence for a prompt, or null when the stream was cancelled while it waited for one. `fresh` clears the
   * sequence, so that nothing of an earlier stream plays a part.
   */
  async take(tokens: readonly Token[], fresh: boolean, control: StreamControl): Promise<TakenSequence | null> {
    const sequence = this.#takeBest(tokens) ?? (await this.#wait(control));
    if (sequence === null) return null;
    const reusable = fresh || sequence.needsCheckpoints ? 0 : sequence.compareContextTokens(tokens as Token[]).firstDifferentIndex;
    const held = Math.min(reusable, tokens.length - 1);
    if (held < sequence.nextTokenIndex) await sequence.eraseContextTokenRanges([{ start: held, end: sequence.nextTokenIndex }]);
    return { sequence, held };
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

  #takeBest(tokens: readonly Token[]): LlamaContextSequence | undefined {
    let best = -1;
    let bestHeld = -1;
    for (const [index, sequence] of this.#free.entries()) {
      const held = sequence.compareContextTokens(tokens as Token[]).firstDifferentIndex;
      // Of sequences that share equally much, the one that holds least else is given away first.
      const worth = held - sequence.nextTokenIndex / (this.context.contextSize + 1);
      if (best === -1 || worth > bestHeld) {
        best = index;
        bestHeld = worth;
      }
    }
    return best === -1 ? undefined : this.#free.splice(best, 1)[0];
  }
}
