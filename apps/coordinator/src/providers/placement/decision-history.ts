/**
 * The last placement decisions that concerned one provider, as they were recorded when they were made. Those of one kind that
 * follow each other closely are one entry with a count, so that a few entries cover a long time; memory is bounded.
 */
import type { PlacementVerdict } from './placement-verdict.js';

export interface LoggedDecision {
  readonly model: string;
  /** The newest, where there were several. */
  readonly verdict: PlacementVerdict;
  /** Decisions of this kind. */
  readonly count: number;
  /** Milliseconds. */
  readonly firstAt: number;
  readonly lastAt: number;
  /** With `untrusted`: when the newest challenge was answered, in milliseconds. */
  readonly challengedAt: number | null;
}

type Mutable = { -readonly [Name in keyof LoggedDecision]: LoggedDecision[Name] };

/** Entries that are kept. */
const MAX_ENTRIES = 24;
/** Decisions of one kind that are no further apart than this belong together, in milliseconds. */
const MERGE_WINDOW_MS = 60_000;
/** A kind is looked for among this many of the newest entries. */
const MAX_LOOKBACK = 6;

export class DecisionHistory {
  /** The oldest first. */
  readonly #entries: Mutable[] = [];

  add(model: string, verdict: PlacementVerdict, challengedAt: number | null, now: number): void {
    for (let back = 1; back <= MAX_LOOKBACK; back++) {
      const entry = this.#entries.at(-back);
      if (entry === undefined) break;
      if (entry.model !== model || entry.verdict.outcome !== verdict.outcome || entry.verdict.reason !== verdict.reason) continue;
      if (now - entry.lastAt > MERGE_WINDOW_MS) break;
      entry.count++;
      entry.lastAt = now;
      entry.verdict = verdict;
      entry.challengedAt = challengedAt;
      return;
    }
    this.#entries.push({ model, verdict, count: 1, firstAt: now, lastAt: now, challengedAt });
    if (this.#entries.length > MAX_ENTRIES) this.#entries.shift();
  }

  /** The newest first. */
  get entries(): readonly LoggedDecision[] {
    return [...this.#entries].sort((a, b) => b.lastAt - a.lastAt);
  }
}
