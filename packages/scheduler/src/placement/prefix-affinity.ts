/**
 * `PrefixAffinity` remembers which providers served the beginnings of recent prompts, and so probably have them in their KV cache.
 *
 * Each provider has a hit rate, an average of cached tokens in its receipts divided by the cached tokens that were expected.
 */
import type { ProviderId } from '@inference/protocol';
import { BoundedMap } from '../bounded-map.js';
import type { PrefixCandidate } from './schedule.js';

/** One prefix of a prompt, in whole blocks. */
export interface PromptPrefix {
  /** Hash under a secret of the coordinators, different per account and model. Never logged or stored, and sent only to coordinators. */
  readonly hash: number;
  readonly tokens: number;
}

/** Job counts of a provider, from which cache evictions are estimated. */
export interface ProviderJobs {
  /** Number of jobs placed over the current connection. */
  readonly placements: number;
  /** Start of the current connection, in milliseconds. */
  readonly since: number;
  /** Each slot caches one prompt, by assumption. */
  readonly slots: number;
}

interface PrefixEntry {
  readonly providerId: ProviderId;
  readonly at: number;
  /** The value of {@link ProviderJobs.placements} at `at`. */
  readonly placements: number;
}

/** Limit over all models. */
const MAX_PREFIXES = 200_000;
const MAX_PROVIDERS_PER_PREFIX = 4;
const MAX_PROVIDERS = 200_000;
/** Time for which a prefix is considered cached, in milliseconds. */
export const PREFIX_LIFETIME_MS = 15 * 60_000;
/** Number of longest prefixes that an extract keeps. The previous turn of a conversation probably ends at one of them. */
const LAST_PREFIXES = 5;
const INITIAL_HIT_RATE = 0.5;
/** Above 0, so that a provider still gets such jobs, which can raise its rate again. */
const MIN_HIT_RATE = 0.05;
/** Weight of the newest observation in the hit rate. */
const NEWEST_WEIGHT = 0.3;

/** Selects the prefixes to store: the whole prompt, and the first after each doubling of length, for prompts that diverge early. */
export function storedPrefixes(promptPrefixes: readonly PromptPrefix[]): readonly PromptPrefix[] {
  return promptPrefixes.filter((prefix, index) => {
    const before = promptPrefixes[index - 1];
    return before === undefined || index === promptPrefixes.length - 1 || octaveOf(before) < octaveOf(prefix);
  });
}

/** Selects at most `max` prefixes to send to another coordinator: the longest, then {@link storedPrefixes} of the others. */
export function extractPrefixes(promptPrefixes: readonly PromptPrefix[], max: number): readonly PromptPrefix[] {
  if (promptPrefixes.length <= max) return promptPrefixes;
  const last = promptPrefixes.slice(-Math.min(LAST_PREFIXES, max));
  const others = storedPrefixes(promptPrefixes.slice(0, -last.length));
  return [...others.slice(Math.max(0, others.length + last.length - max)), ...last];
}

function octaveOf({ tokens }: PromptPrefix): number {
  return Math.floor(Math.log2(Math.max(1, tokens)));
}

export class PrefixAffinity {
  /** Key: hash of the prefix. Newest entry first. */
  readonly #prefixes = new BoundedMap<number, readonly PrefixEntry[]>(MAX_PREFIXES);
  readonly #hitRates = new BoundedMap<ProviderId, number>(MAX_PROVIDERS);

  get size(): number {
    return this.#prefixes.size;
  }

  /** Providers that probably cached a prefix of the prompt. `promptPrefixes` start with the shortest. `jobsOf`: null if not connected. */
  candidates(
    promptPrefixes: readonly PromptPrefix[],
    now: number,
    jobsOf: (providerId: ProviderId) => ProviderJobs | null,
  ): readonly PrefixCandidate[] {
    const candidates: PrefixCandidate[] = [];
    for (let index = promptPrefixes.length - 1; index >= 0 && candidates.length < MAX_PROVIDERS_PER_PREFIX; index--) {
      const { hash, tokens } = promptPrefixes[index] as PromptPrefix;
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

  /** Records that a provider answered the prompt. `cachedTokens`: from its receipt. */
  record(promptPrefixes: readonly PromptPrefix[], cachedTokens: number, providerId: ProviderId, jobs: ProviderJobs, now: number): void {
    const expected = this.#expected(promptPrefixes, providerId, jobs, now);
    if (expected > 0) this.#updateHitRate(providerId, Math.min(1, cachedTokens / expected));
    const entry = { providerId, at: now, placements: jobs.placements };
    for (const { hash } of storedPrefixes(promptPrefixes)) this.#remember(hash, entry);
  }

  /** Observed prefix-cache hit rate of a provider, 0 to 1: reported over expected cached tokens. */
  hitRate(providerId: ProviderId): number {
    return this.#hitRates.get(providerId) ?? INITIAL_HIT_RATE;
  }

  /** Prompt tokens that the provider should have cached before this job. */
  #expected(promptPrefixes: readonly PromptPrefix[], providerId: ProviderId, jobs: ProviderJobs, now: number): number {
    for (let index = promptPrefixes.length - 1; index >= 0; index--) {
      const { hash, tokens } = promptPrefixes[index] as PromptPrefix;
      const entry = this.#prefixes.get(hash)?.find((one) => one.providerId === providerId);
      // `placements` already includes the job being recorded.
      if (entry !== undefined) return survivalProbability(entry, { ...jobs, placements: jobs.placements - 1 }, now) === 1 ? tokens : 0;
    }
    return 0;
  }

  #updateHitRate(providerId: ProviderId, share: number): void {
    const known = this.hitRate(providerId);
    this.#hitRates.set(providerId, Math.max(MIN_HIT_RATE, known + NEWEST_WEIGHT * (share - known)));
  }

  #remember(hash: number, entry: PrefixEntry): void {
    const others = (this.#prefixes.get(hash) ?? []).filter(
      ({ providerId, at }) => providerId !== entry.providerId && entry.at - at < PREFIX_LIFETIME_MS,
    );
    this.#prefixes.set(hash, [entry, ...others.slice(0, MAX_PROVIDERS_PER_PREFIX - 1)]);
  }
}

/** Probability that a prefix is still cached: 1 until each slot may have got a newer job, then decreasing. */
function survivalProbability({ at, placements }: PrefixEntry, jobs: ProviderJobs, now: number): number {
  // After a reconnect, the agent may have restarted with an empty cache.
  if (now - at >= PREFIX_LIFETIME_MS || at < jobs.since) return 0;
  const since = jobs.placements - placements;
  return since < jobs.slots ? 1 : (jobs.slots / (since + 1)) ** 2;
}
