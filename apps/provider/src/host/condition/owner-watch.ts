/** Looks every few seconds how long nobody has used the machine, for as long as somebody wants to know. */
import { setTimeout as delay } from 'node:timers/promises';
import { type IdleSource, readIdleMs } from './idle-time.js';

export class OwnerWatch {
  readonly #source: IdleSource;
  readonly #everyMs: number;
  readonly #onLook: () => void;
  readonly #leave = new AbortController();
  #watching: Promise<void> | null = null;
  #wanted = false;
  #idleMs: number | null = null;

  constructor(source: IdleSource, everyMs: number, onLook: () => void) {
    this.#source = source;
    this.#everyMs = everyMs;
    this.#onLook = onLook;
  }

  /** At the last look, in milliseconds; null: not known. */
  get idleMs(): number | null {
    return this.#idleMs;
  }

  /** Whether it matters. Resolves after the first look. */
  async want(wanted: boolean): Promise<void> {
    this.#wanted = wanted;
    if (!wanted || this.#watching !== null) return;
    await this.#look();
    this.#watching ??= this.#watch();
  }

  async close(): Promise<void> {
    this.#leave.abort();
    await this.#watching;
  }

  async #watch(): Promise<void> {
    const { signal } = this.#leave;
    while (this.#wanted && !signal.aborted) {
      await delay(this.#everyMs, undefined, { signal, ref: false }).catch(() => {});
      if (signal.aborted || !this.#wanted) break;
      await this.#look();
      if (!signal.aborted) this.#onLook();
    }
    this.#watching = null;
  }

  async #look(): Promise<void> {
    this.#idleMs = await readIdleMs(this.#source);
  }
}
