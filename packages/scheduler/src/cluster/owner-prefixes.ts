/**
 * `OwnerPrefixes` remembers which coordinator's provider last served each prompt prefix, and so probably has it in its KV cache.
 *
 * Coordinators send each other only hashes of the prefixes.
 */
import { BoundedMap } from '../bounded-map.js';
import { PREFIX_LIFETIME_MS, type PromptPrefix } from '../placement/prefix-affinity.js';
import type { OwnerPrefix } from './owner-choice.js';
import type { OwnerId } from './owner-digests.js';

interface PublishedPrefix {
  readonly owner: OwnerId;
  readonly at: number;
}

const MAX_PREFIXES = 200_000;

export class OwnerPrefixes {
  readonly #prefixes = new BoundedMap<number, PublishedPrefix>(MAX_PREFIXES);

  get size(): number {
    return this.#prefixes.size;
  }

  /** Records the prefixes of a prompt that one of the owner's providers answered. `now` in milliseconds. */
  record(hashes: Iterable<number>, owner: OwnerId, now: number): void {
    const published = { owner, at: now };
    for (const hash of hashes) this.#prefixes.set(hash, published);
  }

  /** Latest owner of the longest known prefix. `promptPrefixes` start with the shortest. */
  find(promptPrefixes: readonly PromptPrefix[], now: number): OwnerPrefix | null {
    for (let index = promptPrefixes.length - 1; index >= 0; index--) {
      const { hash, tokens } = promptPrefixes[index] as PromptPrefix;
      const published = this.#prefixes.get(hash);
      if (published !== undefined && now - published.at < PREFIX_LIFETIME_MS) return { owner: published.owner, tokens };
    }
    return null;
  }
}
