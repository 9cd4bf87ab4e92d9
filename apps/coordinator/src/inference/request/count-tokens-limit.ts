/**
 * Limits `POST /v1/messages/count_tokens` per account, because counting is free: bytes per minute (token bucket), and concurrent
 * requests and bytes. Images also count by their pixels, see {@link imageBytes}.
 */
import { BoundedMap } from '@inference/scheduler/bounded-map';
import type { InputImages } from './job-request.js';

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

export interface AdmittedCount {
  readonly kind: 'admitted';
  /** Counts more bytes for the request. Not null: seconds until a new attempt can succeed; the request is cancelled. */
  add(bytes: number): number | null;
  release(): void;
  /** The request is refused after all, and its bytes do not count. */
  cancel(): void;
}

type CountTokensAdmission = AdmittedCount | { readonly kind: 'refused'; readonly retryAfterSeconds: number };

/** Claude Code counts some 15 prompts at once. */
const MAX_REQUESTS_AT_ONCE = 32;
const MAX_BYTES_AT_ONCE = 16 * 1024 * 1024;
const MAX_ACCOUNTS = 20_000;
const MINUTE_MS = 60_000;
/** The largest image, of 40 megapixels, counts for 5 MB, as much as its file may have. */
const PIXELS_PER_BYTE = 8;
/** Undoes the rounding of refilled fractions, so that a wait of `retryAfterSeconds` suffices. */
const TOLERANCE_BYTES = 0.001;

/** Bytes that images count for besides their data, one per eight pixels: a provider decodes them, however small the data is. */
export function imageBytes({ maxPixels }: Pick<InputImages, 'maxPixels'>): number {
  return Math.ceil(maxPixels / PIXELS_PER_BYTE);
}

export class CountTokensLimit {
  readonly #bytesPerMinute: number;
  readonly #now: () => number;
  readonly #accounts: BoundedMap<string, Usage>;

  constructor({ bytesPerMinute, now = () => performance.now(), maxAccounts = MAX_ACCOUNTS }: CountTokensLimitOptions) {
    this.#bytesPerMinute = bytesPerMinute;
    this.#now = now;
    this.#accounts = new BoundedMap(maxAccounts);
  }

  /** Bytes that a request counts for: a request above the whole bucket would never be admitted. */
  costOf(bytes: number): number {
    return Math.min(bytes, this.#bytesPerMinute);
  }

  /** Admits a request with this many bytes. The caller releases an admitted request when it is answered. */
  admit(accountId: string, bytes: number): CountTokensAdmission {
    if (this.#bytesPerMinute === 0) return { kind: 'admitted', add: () => null, release: () => {}, cancel: () => {} };
    const usage = this.#usageOf(accountId);
    if (usage.requestCount >= MAX_REQUESTS_AT_ONCE) return { kind: 'refused', retryAfterSeconds: 1 };
    const seconds = this.#secondsUntil(usage, { bytes, countedBytes: 0, otherRequests: usage.requestCount });
    if (seconds !== null) return { kind: 'refused', retryAfterSeconds: seconds };
    usage.availableBytes -= this.costOf(bytes);
    usage.requestCount++;
    usage.heldBytes += bytes;
    let countedBytes = bytes;
    let isReleased = false;
    const release = (): void => {
      if (isReleased) return;
      isReleased = true;
      usage.requestCount--;
      usage.heldBytes -= countedBytes;
    };
    const cancel = (): void => {
      if (!isReleased) usage.availableBytes += this.costOf(countedBytes);
      release();
    };
    const add = (more: number): number | null => {
      // The client has left.
      if (isReleased) return null;
      this.#refill(usage);
      const total = countedBytes + more;
      const missingSeconds = this.#secondsUntil(usage, { bytes: total, countedBytes, otherRequests: usage.requestCount - 1 });
      if (missingSeconds !== null) {
        cancel();
        return missingSeconds;
      }
      usage.availableBytes -= this.costOf(total) - this.costOf(countedBytes);
      usage.heldBytes += more;
      countedBytes = total;
      return null;
    };
    return { kind: 'admitted', add, release, cancel };
  }

  /** Seconds until a request may count for `bytes`, of which `countedBytes` are counted; null: now. */
  #secondsUntil(
    usage: Usage,
    { bytes, countedBytes, otherRequests }: { readonly bytes: number; readonly countedBytes: number; readonly otherRequests: number },
  ): number | null {
    if (otherRequests > 0 && usage.heldBytes - countedBytes + bytes > MAX_BYTES_AT_ONCE) return 1;
    const missing = this.costOf(bytes) - this.costOf(countedBytes) - usage.availableBytes - TOLERANCE_BYTES;
    return missing <= 0 ? null : Math.max(1, Math.ceil((60 * missing) / this.#bytesPerMinute));
  }

  #usageOf(accountId: string): Usage {
    const known = this.#accounts.get(accountId);
    const usage = known ?? { availableBytes: this.#bytesPerMinute, at: this.#now(), requestCount: 0, heldBytes: 0 };
    this.#refill(usage);
    this.#accounts.set(accountId, usage);
    return usage;
  }

  #refill(usage: Usage): void {
    const now = this.#now();
    const refilled = ((now - usage.at) * this.#bytesPerMinute) / MINUTE_MS;
    usage.availableBytes = Math.min(this.#bytesPerMinute, usage.availableBytes + refilled);
    usage.at = now;
  }
}
