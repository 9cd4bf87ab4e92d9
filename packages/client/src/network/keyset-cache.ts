/**
 * `KeysetCache`: the newest verified keyset, shared by all requests. A keyset lists the sealing keys of all providers.
 *
 * Each published keyset has a new number, its epoch. A coordinator could publish two keysets of one epoch, to show one account other
 * keys. Downloads with the account's API key are therefore compared with public ones, which send no key.
 */
import { type E2eCrypto, type E2eKeyset, type E2eLogHead, keysetLeafBytes, toHex, utf8 } from '@inference/protocol';
import { E2ERefused } from '../refusal.js';
import { BoundedMap } from './bounded-map.js';
import { downloadKeyset, type KeysetSource } from './keyset.js';
import type { LogVerifier } from './log-verifier.js';
import type { ClientState } from './store.js';

/** Time after which the keyset, and each provider's attestation record (`ProviderVerifier`), are verified again, in milliseconds. */
export const REFRESH_AFTER_MS = 5 * 60_000;
/** Maximum epochs for which the hash of the public keyset is remembered. */
const MAX_EPOCHS = 16;
/** Maximum API keys for which a comparison is remembered. Others are compared again. */
const MAX_CREDENTIALS = 256;
/** Maximum attempts per comparison. A new epoch may be published between the two downloads of an attempt. */
const MAX_COMPARE_ATTEMPTS = 3;
/** Maximum consecutive inconclusive comparisons of one API key: the downloads were never of the same epoch. */
const MAX_INCONCLUSIVE = 3;

/** Headers of the caller's API key. */
export type Authorization = Readonly<Record<string, string>>;

export interface CurrentKeyset {
  readonly keyset: E2eKeyset;
  /** Accepted tree head of the log; null: the policy does not require the log. */
  readonly log: E2eLogHead | null;
  /** Milliseconds since 1970. */
  readonly verifiedAt: number;
}

export interface KeysetCacheOptions extends KeysetSource {
  readonly crypto: Pick<E2eCrypto, 'sha256'>;
  readonly state: ClientState;
  /** Null: the policy does not require the log. */
  readonly logVerifier: LogVerifier | null;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

export class KeysetCache {
  readonly #options: KeysetCacheOptions;
  #current: CurrentKeyset | null = null;
  #refreshing: Promise<CurrentKeyset> | null = null;
  /** Hashes of public keysets. Key: epoch. */
  readonly #publicHashes = new BoundedMap<number, string>(MAX_EPOCHS);
  /** Running and successful comparisons since the last refresh. Key: digest of the API key. */
  readonly #comparisons = new BoundedMap<string, Promise<void>>(MAX_CREDENTIALS);
  /** Numbers of consecutive inconclusive comparisons. Key: digest of the API key. */
  readonly #inconclusiveCounts = new BoundedMap<string, number>(MAX_CREDENTIALS);

  constructor(options: KeysetCacheOptions) {
    this.#options = options;
  }

  /** Time of the last verification; null before the first one and after {@link invalidate}. */
  get verifiedAt(): number | null {
    return this.#current?.verifiedAt ?? null;
  }

  /** Forgets the keyset and any running download, so the next request downloads again. */
  invalidate(): void {
    this.#current = null;
    this.#refreshing = null;
  }

  /**
   * Returns a keyset verified within {@link REFRESH_AFTER_MS}.
   *
   * @param authorization Also compares a download with these headers, whose epoch may be newer than that of the returned keyset.
   * @throws {E2ERefused}
   */
  async current(authorization: Authorization = {}): Promise<CurrentKeyset> {
    const current = await this.#getFresh();
    if (Object.keys(authorization).length > 0) await this.#compareOnce(authorization);
    return current;
  }

  async #getFresh(): Promise<CurrentKeyset> {
    const now = this.#options.now();
    // `Math.abs`: after a backward clock step, the cached keyset is stale.
    if (this.#current !== null && Math.abs(now - this.#current.verifiedAt) < REFRESH_AFTER_MS) return this.#current;
    // Concurrent requests share one download, which no abort signal cancels.
    this.#refreshing ??= this.#startRefresh();
    return this.#refreshing;
  }

  /** Starts a refresh. Stores its result, unless {@link invalidate} was called meanwhile. */
  #startRefresh(): Promise<CurrentKeyset> {
    const refreshing = this.#refresh().then(
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

  async #refresh(): Promise<CurrentKeyset> {
    const { state, logVerifier, now } = this.#options;
    await state.load();
    const keyset = await this.#downloadPublic();
    this.#comparisons.clear();
    let log: E2eLogHead | null = null;
    if (logVerifier !== null) {
      // A keyset without an inclusion proof counts as missing from the log.
      if (keyset.log === undefined) throw new E2ERefused('split_view', 'The keyset is not in a transparency log.');
      const accepted = await logVerifier.verifyKeyset(keyset, state.log, now());
      await state.setLog(accepted.state);
      log = accepted.head;
    }
    return { keyset, log, verifiedAt: now() };
  }

  /** Downloads the keyset without the API key, and remembers its hash. Throws {@link E2ERefused}, also for a changed keyset. */
  async #downloadPublic(): Promise<E2eKeyset> {
    const keyset = await downloadKeyset(this.#options, { headers: {} }, this.#options.now());
    const hash = this.#hashOf(keyset);
    const earlier = this.#publicHashes.get(keyset.epoch);
    if (earlier !== undefined && earlier !== hash) throw new E2ERefused('targeted', `Epoch ${keyset.epoch} has two keysets.`);
    this.#publicHashes.set(keyset.epoch, hash);
    return keyset;
  }

  /** Compares once per API key and refresh. Inconclusive and failed comparisons are repeated. Concurrent requests share one. */
  #compareOnce(authorization: Authorization): Promise<void> {
    const digest = this.#digestOf(authorization);
    const running = this.#comparisons.get(digest);
    if (running !== undefined) return running;
    const comparing: Promise<void> = this.#compare(authorization).then(
      (isConclusive) => {
        if (isConclusive) {
          this.#inconclusiveCounts.delete(digest);
          return;
        }
        // A refresh may have removed this comparison, and another request may have started the next one.
        this.#comparisons.delete(digest, comparing);
        const count = (this.#inconclusiveCounts.get(digest) ?? 0) + 1;
        this.#inconclusiveCounts.set(digest, count);
        if (count > MAX_INCONCLUSIVE) throw new E2ERefused('targeted', 'The keyset with credentials is always of another epoch.');
      },
      (error: unknown) => {
        this.#comparisons.delete(digest, comparing);
        throw error;
      },
    );
    this.#comparisons.set(digest, comparing);
    return comparing;
  }

  /** Returns false if inconclusive. Throws {@link E2ERefused} `targeted` for two keysets of one epoch. */
  async #compare(headers: Authorization): Promise<boolean> {
    for (let attempt = 1; attempt <= MAX_COMPARE_ATTEMPTS; attempt++) {
      const keyset = await downloadKeyset(this.#options, { headers }, this.#options.now());
      if (this.#publicHashes.get(keyset.epoch) === undefined) await this.#downloadPublic();
      const publicHash = this.#publicHashes.get(keyset.epoch);
      if (publicHash === undefined) continue;
      if (publicHash === this.#hashOf(keyset)) return true;
      throw new E2ERefused('targeted', 'The keyset with credentials differs from the public one.');
    }
    return false;
  }

  #hashOf(keyset: E2eKeyset): string {
    return toHex(this.#options.crypto.sha256(keysetLeafBytes(keyset)));
  }

  /** Returns a digest that identifies an API key, so the key itself is not stored. */
  #digestOf(authorization: Authorization): string {
    const sorted = Object.entries(authorization).sort(([a], [b]) => (a < b ? -1 : 1));
    return toHex(this.#options.crypto.sha256(utf8(JSON.stringify(sorted))));
  }
}
