/**
 * `PermitHome`: grants permits of rate limits to all coordinators, for the keys (such as API keys) whose home is this coordinator.
 *
 * The home is the one coordinator that counts a key. A permit is the right to admit one request.
 * While many permits remain, a grant is larger than needed, to save requests. Near the limit, only the needed permits are granted.
 */
import type { Grant, PermitRequest } from './permit-messages.js';

/** At most `max` permits per key in a window. */
export interface LimitRule {
  readonly max: number;
  readonly windowMs: number;
}

interface Window {
  readonly until: number;
  /** Permits granted by an earlier home of the key: the highest number that a coordinator has reported. */
  earlier: number;
  granted: number;
  readonly opener: string;
}

/** Maximum open windows that one coordinator's requests opened, so that no coordinator can use up the memory for all. */
const MAX_WINDOWS_PER_COORDINATOR = 20_000;
/** A grant beyond the need is at most the remaining permits divided by this number and by the number of coordinators. */
const SPARE_DIVISOR = 4;
/** Minimum time between two searches of all windows. */
const MIN_SWEEP_MS = 1000;

export class PermitHome {
  readonly #rules: ReadonlyMap<string, LimitRule>;
  /** Monotonic, in milliseconds. */
  readonly #now: () => number;
  /** Windows by hashed key, the oldest first. */
  readonly #windows = new Map<string, Window>();
  /** Count of open windows by opener. */
  readonly #opened = new Map<string, number>();
  #sweptAt = Number.NEGATIVE_INFINITY;

  constructor(rules: ReadonlyMap<string, LimitRule>, now: () => number) {
    this.#rules = rules;
    this.#now = now;
  }

  /** Grants permits to a coordinator. Null: an unknown limit, or too many windows. */
  take(asker: string, request: PermitRequest, coordinatorCount: number): Grant | null {
    const rule = this.#rules.get(request.limit);
    if (rule === undefined) return null;
    const now = this.#now();
    const window = this.#windowOf(asker, request, rule, now);
    if (window === null) return null;
    if (request.earlier !== null) window.earlier = Math.max(window.earlier, Math.min(request.earlier.used, rule.max));
    const left = Math.max(0, rule.max - window.earlier - window.granted);
    const spare = Math.floor(left / (SPARE_DIVISOR * coordinatorCount));
    const granted = left < request.min ? 0 : Math.min(left, Math.max(request.need, Math.min(request.want, spare)));
    window.granted += granted;
    return { granted, remaining: left - granted, reset_ms: Math.ceil(window.until - now) };
  }

  #windowOf(asker: string, { key, earlier }: PermitRequest, { windowMs }: LimitRule, now: number): Window | null {
    const known = this.#windows.get(key);
    if (known !== undefined && known.until > now) return known;
    this.#forgetOldest(now);
    if (known !== undefined) this.#delete(key, known);
    if (this.#isFull(asker)) this.#forgetAll(now);
    if (this.#isFull(asker)) return null;
    const opened = this.#opened.get(asker) ?? 0;
    this.#opened.set(asker, opened + 1);
    const lengthMs = earlier === null || earlier.reset_ms === 0 ? windowMs : Math.min(windowMs, earlier.reset_ms);
    const window: Window = { until: now + lengthMs, earlier: 0, granted: 0, opener: asker };
    this.#windows.set(key, window);
    return window;
  }

  #isFull(asker: string): boolean {
    return (this.#opened.get(asker) ?? 0) >= MAX_WINDOWS_PER_COORDINATOR;
  }

  /** Removes the oldest windows, up to the first open one. */
  #forgetOldest(now: number): void {
    for (const [key, window] of this.#windows) {
      if (window.until > now) return;
      this.#delete(key, window);
    }
  }

  /** Removes all ended windows. Limits have windows of different lengths, so a younger one may end first. */
  #forgetAll(now: number): void {
    if (now - this.#sweptAt < MIN_SWEEP_MS) return;
    this.#sweptAt = now;
    for (const [key, window] of this.#windows) if (window.until <= now) this.#delete(key, window);
  }

  /** Does nothing if the window was deleted before. */
  #delete(key: string, window: Window): void {
    if (this.#windows.get(key) !== window) return;
    this.#windows.delete(key);
    const { opener } = window;
    const left = (this.#opened.get(opener) ?? 0) - 1;
    if (left > 0) this.#opened.set(opener, left);
    else this.#opened.delete(opener);
  }
}
