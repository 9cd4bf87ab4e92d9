/**
 * `ImageBudget` limits the decoded images in memory, for each cache scope (requests that may share cached prompts) on its own.
 *
 * The limit is in prompt tokens, because native memory grows with them.
 */
import type { StreamControl } from '../process/output/text-stream.js';

/** Part of a scope's budget that a request has reserved. */
export interface ImageReservation {
  /** Returns the tokens beyond `tokens`. */
  shrink(tokens: number): void;
  /** Returns all tokens. Later calls do nothing. */
  release(): void;
}

interface Waiting {
  readonly tokens: number;
  readonly grant: () => void;
}

interface ScopeBudget {
  reserved: number;
  /** In order of arrival. */
  readonly waiting: Waiting[];
}

type Control = Pick<StreamControl, 'cancelled' | 'onChange'>;

export class ImageBudget {
  readonly #budgetByScope = new Map<string | null, ScopeBudget>();

  /** @param maxTokens Limit of one scope. Larger requests reserve this limit. */
  constructor(private readonly maxTokens: number) {}

  /**
   * Waits for room. Resolves to null if the request is cancelled before. All requests with the scope null share one budget.
   *
   * @param control Its `onChange` is replaced if the request must wait.
   */
  async reserve(scope: string | null, tokens: number, control: Control): Promise<ImageReservation | null> {
    const own = this.#budgetByScope.get(scope) ?? { reserved: 0, waiting: [] };
    this.#budgetByScope.set(scope, own);
    const wanted = Math.min(tokens, this.maxTokens);
    if (own.waiting.length === 0 && own.reserved + wanted <= this.maxTokens) own.reserved += wanted;
    else if (!(await waitFor(own, wanted, control))) {
      this.#grantWaiting(scope, own);
      return null;
    }
    let held = wanted;
    const shrink = (rest: number): void => {
      const returned = Math.max(0, held - rest);
      held -= returned;
      own.reserved -= returned;
      if (returned > 0) this.#grantWaiting(scope, own);
    };
    return { shrink, release: () => shrink(0) };
  }

  #grantWaiting(scope: string | null, own: ScopeBudget): void {
    for (let [first] = own.waiting; first !== undefined && own.reserved + first.tokens <= this.maxTokens; [first] = own.waiting) {
      own.waiting.shift();
      own.reserved += first.tokens;
      first.grant();
    }
    const isUnused = own.reserved === 0 && own.waiting.length === 0;
    if (isUnused && this.#budgetByScope.get(scope) === own) this.#budgetByScope.delete(scope);
  }
}

/** Resolves to whether tokens were granted before the request was cancelled. */
function waitFor(own: ScopeBudget, tokens: number, control: Control): Promise<boolean> {
  return new Promise((resolve) => {
    const waiting: Waiting = { tokens, grant: () => resolve(true) };
    own.waiting.push(waiting);
    control.onChange = () => {
      const index = own.waiting.indexOf(waiting);
      if (!control.cancelled || index < 0) return;
      own.waiting.splice(index, 1);
      resolve(false);
    };
  });
}
