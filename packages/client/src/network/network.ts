/** The client's view of the network: one verified keyset, and the verified candidates of each model. */
import type { E2eCrypto, E2eKeyset, E2eKeysetProvider, E2eLogHead } from '@inference/protocol';
import type { Policy } from '../policy/policy.js';
import { E2ERefused } from '../refusal.js';
import { nextChoice, orderedCandidates } from './candidates.js';
import { downloadKeyset, type KeysetSource, requireSameKeyset } from './keyset.js';
import type { LogVerifier } from './log-verifier.js';
import { downloadRecord, downloadSimulatedAnchor } from './records.js';
import type { ClientState } from './store.js';
import { type VerifiedProvider, verifyProvider } from './verified-provider.js';

/** A keyset and the records behind it are verified again after this time. */
const REFRESH_AFTER_MS = 5 * 60_000;
/** Maximum providers that one choice verifies: each costs a download and some 30 ms. */
const MAX_TRIED = 24;
/** When too few providers verify, a new keyset is tried, if the current one is older than this. */
const RETRY_AFTER_MS = 1000;
/** Maximum cached verdicts. */
const MAX_VERIFIED = 256;

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
  readonly log: E2eLogHead | null;
}

interface CurrentKeyset {
  readonly keyset: E2eKeyset;
  readonly log: E2eLogHead | null;
  readonly verifiedAt: number;
}

interface CandidatesInput {
  readonly authorization?: Readonly<Record<string, string>>;
  readonly only?: string | null;
}

interface Chosen {
  readonly providers: readonly VerifiedProvider[];
  readonly refusals: readonly E2ERefused[];
  readonly log: E2eLogHead | null;
  readonly servingCount: number;
}

interface CachedVerdict {
  readonly recordSha256: string;
  readonly keyId: string;
  readonly result: VerifiedProvider | E2ERefused;
  readonly verifiedAt: number;
}

export class Network {
  readonly #options: NetworkOptions;
  readonly #verified = new Map<string, CachedVerdict>();
  #current: CurrentKeyset | null = null;
  #refreshing: Promise<CurrentKeyset> | null = null;

  constructor(options: NetworkOptions) {
    this.#options = options;
  }

  /** Forgets the keyset, also one on its way, so that the next request downloads it. */
  invalidate(): void {
    this.#current = null;
    this.#refreshing = null;
  }

  /**
   * A keyset that is verified and not older than five minutes. `authorization` are the headers of the caller's key: when
   * the keyset is downloaded, a second download with them must be the same. Throws {@link E2ERefused}.
   */
  async keyset(authorization: Readonly<Record<string, string>> = {}): Promise<CurrentKeyset> {
    const now = this.#options.now();
    // After a step of the clock, nothing counts as fresh.
    if (this.#current !== null && Math.abs(now - this.#current.verifiedAt) < REFRESH_AFTER_MS) return this.#current;
    // One download for concurrent requests. Their abort signals do not reach it.
    this.#refreshing ??= this.#startRefresh(authorization);
    return this.#refreshing;
  }

  /** Verified candidates of a model; `only` restricts them to one provider. Throws {@link E2ERefused}. */
  async candidates(model: string, input: CandidatesInput = {}): Promise<Candidates> {
    const first = await this.#chosen(model, input);
    const age = this.#options.now() - (this.#current?.verifiedAt ?? 0);
    if (first.providers.length >= this.#options.policy.minCandidates || age < RETRY_AFTER_MS) return this.#accepted(model, input, first);
    this.invalidate();
    return this.#accepted(model, input, await this.#chosen(model, input));
  }

  async #chosen(model: string, input: CandidatesInput): Promise<Chosen> {
    const { policy, state, crypto } = this.#options;
    const current = await this.keyset(input.authorization);
    const serving = current.keyset.providers.filter(
      ({ models, provider_id }) => models.includes(model) && (!input.only || provider_id === input.only),
    );
    if (serving.length === 0) {
      const refusal = new E2ERefused('no_candidates', `No provider in the keyset serves the model ${JSON.stringify(model)}.`);
      return { providers: [], refusals: [refusal], log: current.log, servingCount: 0 };
    }
    const times = { now: this.#options.now(), stickyFor: policy.stickyFor };
    const ordered = orderedCandidates(crypto, serving, state.choiceOf(model), times);
    return { ...(await this.#verifyFirst(ordered.slice(0, MAX_TRIED))), log: current.log, servingCount: serving.length };
  }

  async #accepted(model: string, input: CandidatesInput, { providers, refusals, log, servingCount }: Chosen): Promise<Candidates> {
    const { policy, state } = this.#options;
    if (providers.length === 0) throw refusals[0] ?? new E2ERefused('no_candidates', 'No provider was verified.');
    if (providers.length < policy.minCandidates && !input.only) {
      const counts = `${providers.length} of ${servingCount} providers were verified, and minCandidates is ${policy.minCandidates}.`;
      throw new E2ERefused('targeted', [counts, refusals[0]?.message ?? ''].join(' ').trim());
    }
    if (providers.some(({ evidence }) => evidence !== 'simulated')) await state.setSeenReal();
    if (!input.only) {
      const used = providers.map(({ providerId }) => providerId);
      const before = state.choiceOf(model);
      const times = { now: this.#options.now(), stickyFor: policy.stickyFor };
      const next = nextChoice(model, before, used, times);
      if (next.provider_ids.join() !== before?.provider_ids.join() || next.chosen_at !== before.chosen_at) await state.setChoice(next);
    }
    return { providers, log };
  }

  /** Keeps the result, unless `invalidate` was called meanwhile. */
  #startRefresh(authorization: Readonly<Record<string, string>>): Promise<CurrentKeyset> {
    const refreshing = this.#refresh(authorization).then(
      (current) => {
        if (this.#refreshing === refreshing) {
          this.#current = current;
          this.#refreshing = null;
        }
        return current;
      },
      (error: unknown) => {
        if (this.#refreshing === refreshing) this.#refreshing = null;
        throw error;
      },
    );
    return refreshing;
  }

  async #refresh(authorization: Readonly<Record<string, string>>): Promise<CurrentKeyset> {
    const { crypto, state, logVerifier, now } = this.#options;
    await state.load();
    const keyset = await downloadKeyset(this.#options, {}, now());
    if (Object.keys(authorization).length > 0) {
      requireSameKeyset(crypto, keyset, await downloadKeyset(this.#options, { headers: authorization }, now()));
    }
    let log: E2eLogHead | null = null;
    if (logVerifier !== null) {
      if (keyset.log === undefined) throw new E2ERefused('split_view', 'The keyset is not in a transparency log.');
      const accepted = await logVerifier.verifyKeyset(keyset, state.log, now());
      await state.setLog(accepted.state);
      log = accepted.head;
    }
    return { keyset, log, verifiedAt: now() };
  }

  /** Verifies in order until enough candidates are found. */
  async #verifyFirst(entries: readonly E2eKeysetProvider[]): Promise<{ providers: VerifiedProvider[]; refusals: E2ERefused[] }> {
    const providers: VerifiedProvider[] = [];
    const refusals: E2ERefused[] = [];
    let index = 0;
    while (index < entries.length && providers.length < this.#options.policy.candidates) {
      const missing = this.#options.policy.candidates - providers.length;
      const batch = entries.slice(index, index + missing);
      index += batch.length;
      for (const result of await Promise.allSettled(batch.map((entry) => this.#provider(entry)))) {
        if (result.status === 'fulfilled') providers.push(result.value);
        else if (result.reason instanceof E2ERefused) refusals.push(result.reason);
        else throw result.reason;
      }
    }
    return { providers, refusals };
  }

  async #provider(entry: E2eKeysetProvider): Promise<VerifiedProvider> {
    const { crypto, policy, state, logVerifier } = this.#options;
    const now = this.#options.now();
    const cached = this.#verified.get(entry.provider_id);
    const isSame = cached?.recordSha256 === entry.record_sha256 && cached.keyId === entry.key_id;
    if (cached !== undefined && isSame && Math.abs(now - cached.verifiedAt) < REFRESH_AFTER_MS) {
      if (cached.result instanceof E2ERefused) throw cached.result;
      if (cached.result.usableUntil > now) return cached.result;
    }
    if (policy.minLogAge > 0) this.#requireLogAge(entry, logVerifier, now);
    const record = await downloadRecord(this.#options, entry);
    const simulatedAnchor = policy.allowSimulated ? await downloadSimulatedAnchor(this.#options, entry.provider_id) : null;
    const result = resultOf(() => verifyProvider(crypto, { entry, record, simulatedAnchor, policy, hasSeenReal: state.hasSeenReal, now }));
    this.#verified.delete(entry.provider_id);
    this.#verified.set(entry.provider_id, { recordSha256: entry.record_sha256, keyId: entry.key_id, result, verifiedAt: now });
    const [oldest] = this.#verified.keys();
    if (this.#verified.size > MAX_VERIFIED && oldest !== undefined) this.#verified.delete(oldest);
    if (result instanceof E2ERefused) throw result;
    return result;
  }

  #requireLogAge(entry: E2eKeysetProvider, logVerifier: LogVerifier | null, now: number): void {
    const { state, policy } = this.#options;
    const loggedBefore = entry.log_index === undefined ? null : (logVerifier?.loggedBefore(entry.log_index, state.log) ?? null);
    if (loggedBefore === null || now - loggedBefore < policy.minLogAge) {
      throw new E2ERefused('targeted', `Provider ${entry.provider_id}: it is not in the transparency log for long enough (minLogAge).`);
    }
  }
}

function resultOf<T>(verify: () => T): T | E2ERefused {
  try {
    return verify();
  } catch (error) {
    if (error instanceof E2ERefused) return error;
    throw error;
  }
}
