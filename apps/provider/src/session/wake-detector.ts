/** `WakeDetector` detects system sleep, a stopped process and clock changes of 10 s or more, after which sockets and keys may be invalid. */

interface WakeDetectorOptions {
  readonly wall?: () => number;
  /** May stop during sleep. */
  readonly monotonic?: () => number;
  readonly everyMs?: number;
}

export interface Wake {
  /** Time in which no timer ran, or jump of the wall clock, negative if set back. */
  readonly jumpMs: number;
}

const EVERY_MS = 1_000;
/** Timers of a busy machine are late by less. */
const MIN_JUMP_MS = 10_000;

export class WakeDetector {
  readonly #listeners = new Set<(wake: Wake) => void>();
  readonly #timer: NodeJS.Timeout;
  readonly #wall: () => number;
  readonly #monotonic: () => number;
  #lastWall: number;
  #lastMonotonic: number;

  constructor({ wall = Date.now, monotonic = () => performance.now(), everyMs = EVERY_MS }: WakeDetectorOptions = {}) {
    this.#wall = wall;
    this.#monotonic = monotonic;
    this.#lastWall = wall();
    this.#lastMonotonic = monotonic();
    this.#timer = setInterval(() => this.check(), everyMs);
    this.#timer.unref();
  }

  /** Returns the unsubscribe function. */
  on(listener: (wake: Wake) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Called by the timer, and directly by tests. */
  check(): void {
    const [wall, monotonic] = [this.#wall(), this.#monotonic()];
    const [byWall, byMonotonic] = [wall - this.#lastWall, monotonic - this.#lastMonotonic];
    [this.#lastWall, this.#lastMonotonic] = [wall, monotonic];
    const jumpMs = byWall < -MIN_JUMP_MS ? byWall : Math.max(byWall, byMonotonic);
    if (Math.abs(jumpMs) < MIN_JUMP_MS) return;
    for (const listener of this.#listeners) listener({ jumpMs: Math.round(jumpMs) });
  }

  close(): void {
    clearInterval(this.#timer);
    this.#listeners.clear();
  }
}
