/**
 * `CountTokensLimit` limits `POST /v1/messages/count_tokens` per account, because counting is free.
 *
 * The bytes per minute, the concurrent requests and the bytes of these are limited. Pixels of images are charged as bytes.
 *
 * The limits apply to one coordinator. `token-counting.ts` adds a limit of the whole cluster.
 */
import { BoundedMap } from '@inference/scheduler/bounded-map';
import type { InputImages } from './job-request.js';

interface CountTokensLimitOptions {
  /** 0 disables the limits. */
  readonly bytesPerMinute: number;
  /** Monotonic time in milliseconds. */
  readonly now?: () => number;
}

interface Usage {
  /** Bytes that may be charged now. Refilled continuously up to `bytesPerMinute` (token bucket algorithm). */
  availableBytes: number;
  refilledAt: number;
  requestCount: number;
  /** Bytes charged for running requests. */
  heldBytes: number;
}

export interface AdmittedCount {
  readonly kind: 'admitted';
  /** Charges further bytes to the request. Null if admitted. Otherwise cancels the request, and returns the seconds to wait. */
  add(bytes: number): number | null;
  /** Ends the request after its response. */
  release(): void;
  /** Releases a request that did not run, and gives its charged bytes back. */
  cancel(): void;
}

type CountTokensAdmission = AdmittedCount | { readonly kind: 'refused'; readonly retryAfterSeconds: number };

/** Claude Code counts some 15 prompts at once. */
const MAX_REQUESTS_AT_ONCE = 32;
const MAX_BYTES_AT_ONCE = 16 * 1024 * 1024;
const MAX_ACCOUNTS = 20_000;
const MINUTE_MS = 60_000;
/** With this rate, the largest image, of 40 megapixels, costs 5 MB: about the maximum size of an image file. */
const PIXELS_PER_BYTE = 8;
/** Tolerance for rounding, so that a retry after `retryAfterSeconds` succeeds. */
const TOLERANCE_BYTES = 0.001;

/** Bytes charged for the pixels of images, in addition to their data. A small file may still be expensive to decode. */
export function bytesChargedForPixels({ maxPixels }: Pick<InputImages, 'maxPixels'>): number {
  return Math.ceil(maxPixels / PIXELS_PER_BYTE);
}

export class CountTokensLimit {
  readonly #bytesPerMinute: number;
  readonly #now: () => number;
  readonly #accounts: BoundedMap<string, Usage>;

  constructor({ bytesPerMinute, now = () => performance.now() }: CountTokensLimitOptions) {
    this.#bytesPerMinute = bytesPerMinute;
    this.#now = now;
    this.#accounts = new BoundedMap(MAX_ACCOUNTS);
  }

  /** Bytes charged for a request. At most those of a minute, or larger requests would never be admitted. */
  costOf(bytes: number): number {
    return Math.min(bytes, this.#bytesPerMinute);
  }

  /** Admits or refuses a request of this many bytes. The caller releases an admitted request after its response. */
  admit(accountId: string, bytes: number): CountTokensAdmission {
    if (this.#bytesPerMinute === 0) return { kind: 'admitted', add: () => null, release: () => {}, cancel: () => {} };
    const usage = this.#usageOf(accountId);
    if (usage.requestCount >= MAX_REQUESTS_AT_ONCE) return { kind: 'refused', retryAfterSeconds: 1 };
    const seconds = this.#secondsUntil(usage, { bytes, chargedBytes: 0, otherRequests: usage.requestCount });
    if (seconds !== null) return { kind: 'refused', retryAfterSeconds: seconds };
    usage.availableBytes -= this.costOf(bytes);
    usage.requestCount++;
    usage.heldBytes += bytes;
    let chargedBytes = bytes;
    let isReleased = false;
    const release = (): void => {
      if (isReleased) return;
      isReleased = true;
      usage.requestCount--;
      usage.heldBytes -= chargedBytes;
    };
    const cancel = (): void => {
      if (!isReleased) usage.availableBytes += this.costOf(chargedBytes);
      release();
    };
    const add = (more: number): number | null => {
      // A request that has ended is not charged.
      if (isReleased) return null;
      this.#refill(usage);
      const total = chargedBytes + more;
      const missingSeconds = this.#secondsUntil(usage, { bytes: total, chargedBytes, otherRequests: usage.requestCount - 1 });
      if (missingSeconds !== null) {
        cancel();
        return missingSeconds;
      }
      usage.availableBytes -= this.costOf(total) - this.costOf(chargedBytes);
      usage.heldBytes += more;
      chargedBytes = total;
      return null;
    };
    return { kind: 'admitted', add, release, cancel };
  }

  /** Seconds until a request may be charged `bytes` in total, of which `chargedBytes` are already charged. Null means now. */
  #secondsUntil(
    usage: Usage,
    { bytes, chargedBytes, otherRequests }: { readonly bytes: number; readonly chargedBytes: number; readonly otherRequests: number },
  ): number | null {
    if (otherRequests > 0 && usage.heldBytes - chargedBytes + bytes > MAX_BYTES_AT_ONCE) return 1;
    const missing = this.costOf(bytes) - this.costOf(chargedBytes) - usage.availableBytes - TOLERANCE_BYTES;
    return missing <= 0 ? null : Math.max(1, Math.ceil((60 * missing) / this.#bytesPerMinute));
  }

  #usageOf(accountId: string): Usage {
    const known = this.#accounts.get(accountId);
    const usage = known ?? { availableBytes: this.#bytesPerMinute, refilledAt: this.#now(), requestCount: 0, heldBytes: 0 };
    this.#refill(usage);
    this.#accounts.set(accountId, usage);
    return usage;
  }

  #refill(usage: Usage): void {
    const now = this.#now();
    const refilled = ((now - usage.refilledAt) * this.#bytesPerMinute) / MINUTE_MS;
    usage.availableBytes = Math.min(this.#bytesPerMinute, usage.availableBytes + refilled);
    usage.refilledAt = now;
  }
}
