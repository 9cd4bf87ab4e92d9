/**
 * Limits `POST /v1/messages/count_tokens` per account, because counting is free: bytes per minute (token bucket), and concurrent
 * requests and bytes.
 */
import { BoundedMap } from '@inference/scheduler/bounded-map';

interface CountTokensLimitOptions {
  /** 0 sets no limit. */
  readonly bytesPerMinute: number;
  /** Monotonic time in milliseconds. */
  readonly now?: () => number;
  readonly maxAccounts?: number;
}

interface Usage {
  availableBytes: number;
  at: number;
  requestCount: number;
  heldBytes: number;
}

type CountTokensAdmission =
  /** `cancel`: the request is refused after all, and its bytes do not count. */
  { readonly kind: 'admitted'; release(): void; cancel(): void } | { readonly kind: 'refused'; readonly retryAfterSeconds: number };

/** Claude Code counts some 15 prompts at once. */
const MAX_REQUESTS_AT_ONCE = 32;
const MAX_BYTES_AT_ONCE = 16 * 1024 * 1024;
const MAX_ACCOUNTS = 20_000;
const MINUTE_MS = 60_000;
/** Undoes the rounding of refilled fractions, so that a wait of `retryAfterSeconds` suffices. */
const TOLERANCE_BYTES = 0.001;

export class CountTokensLimit {
  readonly #bytesPerMinute: number;
  readonly #now: () => number;
  readonly #accounts: BoundedMap<string, Usage>;

  constructor({ bytesPerMinute, now = () => performance.now(), maxAccounts = MAX_ACCOUNTS }: CountTokensLimitOptions) {
    this.#bytesPerMinute = bytesPerMinute;
    this.#now = now;
    this.#accounts = new BoundedMap(maxAccounts);
  }

  /** Bytes that a body counts for: a body above the whole bucket would never be admitted. */
  costOf(bytes: number): number {
    return Math.min(bytes, this.#bytesPerMinute);
  }

  /** Admits a request with this many body bytes. The caller releases an admitted request when it is answered. */
  admit(accountId: string, bytes: number): CountTokensAdmission {
    if (this.#bytesPerMinute === 0) return { kind: 'admitted', release: () => {}, cancel: () => {} };
    const usage = this.#usageOf(accountId);
    if (usage.requestCount >= MAX_REQUESTS_AT_ONCE || (usage.requestCount > 0 && usage.heldBytes + bytes > MAX_BYTES_AT_ONCE)) {
      return { kind: 'refused', retryAfterSeconds: 1 };
    }
    const cost = this.costOf(bytes);
    if (cost > usage.availableBytes + TOLERANCE_BYTES) {
      const missing = cost - usage.availableBytes - TOLERANCE_BYTES;
      return { kind: 'refused', retryAfterSeconds: Math.max(1, Math.ceil((60 * missing) / this.#bytesPerMinute)) };
    }
    usage.availableBytes -= cost;
    usage.requestCount++;
    usage.heldBytes += bytes;
    let isReleased = false;
    const release = (): void => {
      if (isReleased) return;
      isReleased = true;
      usage.requestCount--;
      usage.heldBytes -= bytes;
    };
    const cancel = (): void => {
      if (!isReleased) usage.availableBytes += cost;
      release();
    };
    return { kind: 'admitted', release, cancel };
  }

  #usageOf(accountId: string): Usage {
    const now = this.#now();
    const usage = this.#accounts.get(accountId) ?? { availableBytes: this.#bytesPerMinute, at: now, requestCount: 0, heldBytes: 0 };
    const refilled = ((now - usage.at) * this.#bytesPerMinute) / MINUTE_MS;
    usage.availableBytes = Math.min(this.#bytesPerMinute, usage.availableBytes + refilled);
    usage.at = now;
    this.#accounts.set(accountId, usage);
    return usage;
  }
}
