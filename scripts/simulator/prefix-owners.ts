/** Hints of all owners about cached prefixes, as every coordinator receives them: prefix hash → owner. */
import type { OwnerId, OwnerPrefix, PromptPrefix } from '@inference/scheduler';
import type { Random } from './random.js';

interface Hint {
  readonly owner: OwnerId;
  readonly at: number;
}

const MAX_HASHES_PER_ANSWER = 10;
const MAX_HINTS = 200_000;
/** As in the owners' prefix affinity, in milliseconds. */
const LIFETIME_MS = 15 * 60_000;

export class PrefixOwners {
  readonly #hints = new Map<number, Hint>();
  readonly #delayMs: number;
  readonly #lossShare: number;
  readonly #chance: Random;

  constructor(delayMs: number, lossShare: number, chance: Random) {
    this.#delayMs = delayMs;
    this.#lossShare = lossShare;
    this.#chance = chance;
  }

  /** An owner's machine answered a prompt: the whole chain and a halving series, as the owner remembers. */
  record(chain: readonly PromptPrefix[], owner: OwnerId, now: number): void {
    let published = 0;
    for (let index = chain.length - 1; index >= 0 && published < MAX_HASHES_PER_ANSWER; index--) {
      if (index !== chain.length - 1 && (index & (index + 1)) !== 0) continue;
      published++;
      const { hash } = chain[index] as PromptPrefix;
      this.#hints.delete(hash);
      this.#hints.set(hash, { owner, at: now });
    }
    for (const hash of this.#hints.keys()) {
      if (this.#hints.size <= MAX_HINTS) break;
      this.#hints.delete(hash);
    }
  }

  /** The owner of the longest prefix that `self` knows of. */
  find(chain: readonly PromptPrefix[], self: OwnerId, now: number): OwnerPrefix | null {
    if (this.#chance.happens(this.#lossShare)) return null;
    for (let index = chain.length - 1; index >= 0; index--) {
      const { hash, tokens } = chain[index] as PromptPrefix;
      const hint = this.#hints.get(hash);
      if (hint === undefined || now - hint.at >= LIFETIME_MS) continue;
      if (hint.owner === self || now - hint.at >= this.#delayMs) return { owner: hint.owner, tokens };
    }
    return null;
  }
}
