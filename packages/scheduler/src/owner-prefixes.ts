/**
 * LRU of prompt-prefix hashes and the coordinators whose providers have them cached. Owners publish them, so that the next turn of a
 * conversation finds its cache from any coordinator. Wrong hints cost a dearer provider, never a wrong answer.
 */
import { BoundedMap } from './bounded-map.js';
import type { OwnerPrefix } from './owner-choice.js';
import type { OwnerId } from './owner-digests.js';
import { PREFIX_LIFETIME_MS, type PromptPrefix } from './prefix-affinity.js';

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

  /** A provider of the owner answered a prompt with these prefixes. `now` in milliseconds. */
  record(hashes: Iterable<number>, owner: OwnerId, now: number): void {
    const published = { owner, at: now };
    for (const hash of hashes) this.#prefixes.set(hash, published);
  }

  /** The newest owner of the longest prefix. `promptPrefixes`: prefixes of a prompt, the shortest first. */
  find(promptPrefixes: readonly PromptPrefix[], now: number): OwnerPrefix | null {
    for (let index = promptPrefixes.length - 1; index >= 0; index--) {
      const { hash, tokens } = promptPrefixes[index] as PromptPrefix;
      const published = this.#prefixes.get(hash);
      if (published !== undefined && now - published.at < PREFIX_LIFETIME_MS) return { owner: published.owner, tokens };
    }
    return null;
  }
}
