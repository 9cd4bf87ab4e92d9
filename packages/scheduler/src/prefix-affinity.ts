/**
 * Which machines still know the beginning of a prompt. It remembers keyed hashes of prefixes that machines answered, in bounded
 * memory and for a while, and how far each machine's memory can be trusted, from the cached tokens of its signed receipts.
 */
import type { ProviderId } from '@inference/protocol';
import { BoundedMap } from './bounded-map.js';
import type { PrefixCandidate } from './schedule.js';

/** The beginning of a prompt, up to the end of one of its blocks. */
export interface PromptPrefix {
  /** Keyed with a secret of this process, the account and the model. Never logged, stored or sent. */
  readonly hash: number;
  /** Its length, estimated. */
  readonly tokens: number;
}

/** What is known of a machine's jobs. */
export interface ProviderJobs {
  /** All that it was given on this connection, which began at `since`, in milliseconds. */
  readonly placements: number;
  readonly since: number;
  /** How many prompts it keeps, as far as is known: one for each job that it takes at once. */
  readonly slots: number;
}

interface PrefixEntry {
  readonly providerId: ProviderId;
  readonly at: number;
  /** Its jobs until then. */
  readonly placements: number;
}

/** Prefixes that are remembered, over all models. */
const MAX_PREFIXES = 200_000;
/** Machines that a prefix is remembered for, the newest. */
const MAX_PROVIDERS_PER_PREFIX = 4;
const MAX_PROVIDERS = 200_000;
/** For how long, in milliseconds. */
const LIFETIME_MS = 15 * 60_000;
/** Trust in a machine that was not seen to remember anything yet, and the least there is, so that it can be won back. */
const INITIAL_HIT_RATE = 0.5;
const MIN_HIT_RATE = 0.05;
const NEWEST_WEIGHT = 0.3;

export class PrefixAffinity {
  readonly #prefixes = new BoundedMap<number, readonly PrefixEntry[]>(MAX_PREFIXES);
  readonly #hitRates = new BoundedMap<ProviderId, number>(MAX_PROVIDERS);

  /** Prefixes that are remembered. */
  get size(): number {
    return this.#prefixes.size;
  }

  /** Machines that are expected to know some of a prompt, given by its prefixes from the shortest to the longest. `now` in milliseconds. */
  candidates(
    chain: readonly PromptPrefix[],
    now: number,
    jobsOf: (providerId: ProviderId) => ProviderJobs | null,
  ): readonly PrefixCandidate[] {
    const candidates: PrefixCandidate[] = [];
    for (let index = chain.length - 1; index >= 0 && candidates.length < MAX_PROVIDERS_PER_PREFIX; index--) {
      const { hash, tokens } = chain[index] as PromptPrefix;
      for (const entry of this.#prefixes.get(hash) ?? []) {
        const { providerId } = entry;
        if (candidates.some((place) => place.providerId === providerId)) continue;
        const jobs = jobsOf(providerId);
        if (jobs === null) continue;
        const share = this.hitRate(providerId) * survivalProbability(entry, jobs, now);
        if (share > 0) candidates.push({ providerId, tokens: tokens * share });
      }
    }
    return candidates;
  }

  /**
   * Takes in that a machine answered a prompt. `cachedTokens`: what it said to have known of it; that it says nothing where it
   * should have known some costs trust.
   */
  record(chain: readonly PromptPrefix[], cachedTokens: number, providerId: ProviderId, jobs: ProviderJobs, now: number): void {
    const expected = this.#expected(chain, providerId, jobs, now);
    if (expected > 0) this.#learn(providerId, Math.min(1, cachedTokens / expected));
    const entry = { providerId, at: now, placements: jobs.placements };
    for (let index = 0; index < chain.length; index++) {
      // The whole, and of the rest what halves again and again: enough to find prompts that part ways early.
      const isPowerOfTwo = (index & (index + 1)) === 0;
      if (index === chain.length - 1 || isPowerOfTwo) this.#remember((chain[index] as PromptPrefix).hash, entry);
    }
  }

  /** How much of what it should know a machine turned out to know, from 0 to 1. */
  hitRate(providerId: ProviderId): number {
    return this.#hitRates.get(providerId) ?? INITIAL_HIT_RATE;
  }

  /** Tokens that the machine should have known, when nothing had pushed them out. */
  #expected(chain: readonly PromptPrefix[], providerId: ProviderId, jobs: ProviderJobs, now: number): number {
    for (let index = chain.length - 1; index >= 0; index--) {
      const { hash, tokens } = chain[index] as PromptPrefix;
      const entry = this.#prefixes.get(hash)?.find((one) => one.providerId === providerId);
      // This job itself is one of those since.
      if (entry !== undefined) return survivalProbability(entry, { ...jobs, placements: jobs.placements - 1 }, now) === 1 ? tokens : 0;
    }
    return 0;
  }

  #learn(providerId: ProviderId, share: number): void {
    const known = this.hitRate(providerId);
    this.#hitRates.set(providerId, Math.max(MIN_HIT_RATE, known + NEWEST_WEIGHT * (share - known)));
  }

  #remember(hash: number, entry: PrefixEntry): void {
    const others = (this.#prefixes.get(hash) ?? []).filter(
      ({ providerId, at }) => providerId !== entry.providerId && entry.at - at < LIFETIME_MS,
    );
    this.#prefixes.set(hash, [entry, ...others.slice(0, MAX_PROVIDERS_PER_PREFIX - 1)]);
  }
}

/** The chance that a prefix is still there: certain until as many other jobs came as there are places, then less and less. */
function survivalProbability({ at, placements }: PrefixEntry, jobs: ProviderJobs, now: number): number {
  // A connection that is newer may be that of a program that began anew.
  if (now - at >= LIFETIME_MS || at < jobs.since) return 0;
  const since = jobs.placements - placements;
  return since < jobs.slots ? 1 : (jobs.slots / (since + 1)) ** 2;
}
