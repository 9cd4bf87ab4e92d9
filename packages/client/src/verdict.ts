/** `E2eVerdict`: whether a response was verified, from which provider, or why not. */
import type { E2eReceipt } from '@inference/protocol';
import type { VerifiedProvider } from './network/verified-provider.js';
import type { E2ERefused } from './refusal.js';

export type E2eVerdict =
  /** Answer to a GET or HEAD request, which is neither sealed nor verified. */
  | { readonly state: 'unverified' }
  /** A stream that has not ended: every byte so far is authenticated, the end is not verified. */
  | { readonly state: 'pending'; readonly provider: VerifiedProvider; readonly jobId: string }
  /** Complete, signed by the provider, with a receipt for exactly this request. The provider's own errors are verified, too. */
  | { readonly state: 'verified'; readonly provider: VerifiedProvider; readonly jobId: string; readonly receipt: E2eReceipt }
  /** Nothing of the provider reached the caller, or a stream ended in an error. */
  | { readonly state: 'refused'; readonly refusal: E2ERefused };

/** A verdict that changes once, when a stream ends. */
export class VerdictCell {
  #verdict: E2eVerdict;
  readonly #onFinal: (verdict: E2eVerdict) => void;

  constructor(verdict: E2eVerdict, onFinal: (verdict: E2eVerdict) => void) {
    this.#verdict = verdict;
    this.#onFinal = onFinal;
    if (verdict.state !== 'pending') onFinal(verdict);
  }

  get verdict(): E2eVerdict {
    return this.#verdict;
  }

  /** Ends `pending`. Later calls have no effect. */
  settle(verdict: E2eVerdict): void {
    if (this.#verdict.state !== 'pending') return;
    this.#verdict = verdict;
    this.#onFinal(verdict);
  }
}

const cells = new WeakMap<Response, VerdictCell>();

export function setVerdict(response: Response, cell: VerdictCell): Response {
  cells.set(response, cell);
  return response;
}

/** Returns the verdict on a response of a verified fetch; null for other responses. The verdict on a stream changes at its end. */
export function verdictOf(response: Response): E2eVerdict | null {
  return cells.get(response)?.verdict ?? null;
}
