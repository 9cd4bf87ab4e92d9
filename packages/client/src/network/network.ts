/** The client's view of the network: one verified keyset, and the verified candidates of each model. */
import type { E2eCrypto, E2eKeysetProvider, E2eLogHead } from '@inference/protocol';
import type { Policy } from '../policy/policy.js';
import { E2ERefused } from '../refusal.js';
import type { KeysetSource } from './keyset.js';
import { type Authorization, KeysetCache } from './keyset-cache.js';
import { LogEvidence } from './log-evidence.js';
import type { LogVerifier } from './log-verifier.js';
import { ProviderVerifier } from './provider-verifier.js';
import { type Choice, type ClientState, MAX_CHOICE_PROVIDERS } from './store.js';
import type { VerifiedProvider } from './verified-provider.js';

/** Maximum providers verified per selection. Each costs a download and some 30 ms. */
const MAX_VERIFICATIONS = 24;
/** Minimum age in milliseconds at which a keyset with too few verified providers is downloaded again. */
const MIN_RETRY_AGE_MS = 1000;

export interface NetworkOptions extends KeysetSource {
  readonly crypto: E2eCrypto;
  readonly policy: Policy;
  readonly state: ClientState;
  /** Null: the policy does not require the log. */
  readonly logVerifier: LogVerifier | null;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

export interface Candidates {
  /** In order of preference, without a provider twice. */
  readonly providers: readonly VerifiedProvider[];
  /** Tree head of the keyset's log; null: the policy does not require the log. */
  readonly log: E2eLogHead | null;
}

interface CandidateQuery {
  readonly model: string;
  readonly authorization?: Authorization;
  /** The only provider that the caller accepts; null: any. */
  readonly providerId?: string | null;
}

/** Result of verifying the providers of a model in the order of preference. */
interface Selection extends Candidates {
  readonly refusals: readonly E2ERefused[];
  /** Providers in the keyset that match the query. */
  readonly servingCount: number;
}

export class Network {
  readonly #options: NetworkOptions;
  readonly #keysets: KeysetCache;
  readonly #verifier: ProviderVerifier;
  readonly #logEvidence: LogEvidence | null;

  constructor(options: NetworkOptions) {
    const { crypto, logVerifier } = options;
    this.#options = options;
    this.#keysets = new KeysetCache(options);
    this.#logEvidence = logVerifier === null ? null : new LogEvidence(crypto, logVerifier);
    const log = logVerifier === null || this.#logEvidence === null ? null : { verifier: logVerifier, evidence: this.#logEvidence };
    this.#verifier = new ProviderVerifier({ ...options, log });
  }

  /** Forgets the keyset, so that the next request downloads again. */
  invalidate(): void {
    this.#keysets.invalidate();
  }

  /** Downloads and verifies the keyset, unless a current one is cached. Throws {@link E2ERefused}. */
  async ready(): Promise<void> {
    await this.#keysets.current();
  }

  /** Returns verified candidates of a model. `authorization`: see {@link KeysetCache.current}. Throws {@link E2ERefused}. */
  async candidates(query: CandidateQuery): Promise<Candidates> {
    let selection = await this.#select(query);
    const age = this.#options.now() - (this.#keysets.verifiedAt ?? 0);
    if (selection.providers.length < minCandidatesOf(query, this.#options.policy) && age >= MIN_RETRY_AGE_MS) {
      this.invalidate();
      selection = await this.#select(query);
    }
    requireEnough(selection, query, this.#options.policy);
    await this.#remember(selection, query);
    return { providers: selection.providers, log: selection.log };
  }

  /** Compares a provider's checkpoint with the tree head of the request. Throws {@link E2ERefused} `split_view`. */
  async compareCheckpoint(note: string, head: E2eLogHead): Promise<void> {
    await this.#logEvidence?.compareCheckpoint(note, head);
  }

  async #select({ model, authorization, providerId = null }: CandidateQuery): Promise<Selection> {
    const { policy, state, crypto } = this.#options;
    const { keyset, log } = await this.#keysets.current(authorization);
    const serving = keyset.providers.filter(
      ({ models, provider_id }) => models.includes(model) && (providerId === null || provider_id === providerId),
    );
    if (serving.length === 0) {
      const subject = providerId === null ? 'No provider in the keyset serves' : `Provider ${providerId} does not serve`;
      const refusal = new E2ERefused('no_candidates', `${subject} the model ${JSON.stringify(model)}.`);
      return { providers: [], refusals: [refusal], log, servingCount: 0 };
    }
    const times = { now: this.#options.now(), stickyFor: policy.stickyFor };
    const ordered = orderedCandidates(crypto, serving, state.choiceOf(model), times);
    return { ...(await this.#verifyFirst(ordered.slice(0, MAX_VERIFICATIONS), log)), log, servingCount: serving.length };
  }

  /** Verifies in order until enough candidates are found. */
  async #verifyFirst(
    entries: readonly E2eKeysetProvider[],
    head: E2eLogHead | null,
  ): Promise<{ providers: VerifiedProvider[]; refusals: E2ERefused[] }> {
    const providers: VerifiedProvider[] = [];
    const refusals: E2ERefused[] = [];
    let index = 0;
    while (index < entries.length && providers.length < this.#options.policy.candidates) {
      const missing = this.#options.policy.candidates - providers.length;
      const batch = entries.slice(index, index + missing);
      index += batch.length;
      for (const result of await Promise.allSettled(batch.map((entry) => this.#verifier.verify(entry, head)))) {
        if (result.status === 'fulfilled') providers.push(result.value);
        else if (result.reason instanceof E2ERefused) refusals.push(result.reason);
        else throw result.reason;
      }
    }
    return { providers, refusals };
  }

  /** Records whether a provider without simulation was verified. Stores the choice, unless the caller named a provider. */
  async #remember({ providers }: Selection, { model, providerId = null }: CandidateQuery): Promise<void> {
    const { policy, state } = this.#options;
    if (providers.some(({ evidence }) => evidence !== 'simulated')) await state.setSeenReal();
    if (providerId !== null) return;
    const used = providers.map((provider) => provider.providerId);
    const before = state.choiceOf(model);
    const next = nextChoice(model, before, used, { now: this.#options.now(), stickyFor: policy.stickyFor });
    if (next.provider_ids.join() !== before?.provider_ids.join() || next.chosen_at !== before.chosen_at) await state.setChoice(next);
  }
}

/** One named provider suffices. */
function minCandidatesOf({ providerId = null }: CandidateQuery, { minCandidates }: Policy): number {
  return providerId === null ? minCandidates : 1;
}

/** Throws {@link E2ERefused} if fewer providers were verified than the policy demands. */
function requireEnough({ providers, refusals, servingCount }: Selection, query: CandidateQuery, policy: Policy): void {
  if (providers.length === 0) throw refusals[0] ?? new E2ERefused('no_candidates', 'No provider was verified.');
  const minCandidates = minCandidatesOf(query, policy);
  if (providers.length >= minCandidates) return;
  const counts = `${providers.length} of ${servingCount} providers were verified, and minCandidates is ${minCandidates}.`;
  throw new E2ERefused('targeted', [counts, refusals[0]?.message ?? ''].join(' ').trim());
}

/** Orders providers by preference: earlier choices within `stickyFor`, then random ones weighted by capacity. Times in milliseconds. */
export function orderedCandidates(
  crypto: Pick<E2eCrypto, 'randomBytes'>,
  serving: readonly E2eKeysetProvider[],
  choice: Choice | null,
  { now, stickyFor }: { readonly now: number; readonly stickyFor: number },
): readonly E2eKeysetProvider[] {
  const chosenIds = choice !== null && now - choice.chosen_at < stickyFor ? choice.provider_ids : [];
  const chosen = chosenIds.flatMap((id) => serving.find(({ provider_id }) => provider_id === id) ?? []);
  const others = serving.filter((provider) => !chosen.includes(provider));
  return [...chosen, ...weightedShuffle(crypto, others)];
}

/** Returns the choice to store after a request to `used`. Earlier candidates keep their position while offline. */
function nextChoice(
  model: string,
  before: Choice | null,
  used: readonly string[],
  { now, stickyFor }: { readonly now: number; readonly stickyFor: number },
): Choice {
  const isValid = before !== null && now - before.chosen_at < stickyFor;
  if (!isValid) return { model, provider_ids: used.slice(0, MAX_CHOICE_PROVIDERS), chosen_at: now };
  const added = used.filter((id) => !before.provider_ids.includes(id));
  // Earlier candidates are preferred, so the newest replacements are dropped first.
  return { ...before, provider_ids: [...before.provider_ids, ...added].slice(0, MAX_CHOICE_PROVIDERS) };
}

/** Returns a random order in which each next item is drawn with a probability proportional to its weight. */
function weightedShuffle(crypto: Pick<E2eCrypto, 'randomBytes'>, providers: readonly E2eKeysetProvider[]): E2eKeysetProvider[] {
  // Efraimidis and Spirakis (2006): the order of u^(1/w), as logarithms.
  const keyed = providers.map((provider) => ({ provider, key: Math.log(uniform(crypto)) / provider.weight }));
  return keyed.sort((a, b) => b.key - a.key).map(({ provider }) => provider);
}

/** Returns a uniform random number in (0, 1], with 48 random bits. */
function uniform(crypto: Pick<E2eCrypto, 'randomBytes'>): number {
  let value = 0;
  for (const byte of crypto.randomBytes(6)) value = value * 256 + byte;
  return (value + 1) / 2 ** 48;
}
