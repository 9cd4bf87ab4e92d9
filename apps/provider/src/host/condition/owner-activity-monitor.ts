/** `OwnerActivityMonitor` polls the time since the owner's last keyboard or mouse input. Enabled only if the policy needs the time. */
import { setTimeout as delay } from 'node:timers/promises';
import type { HostSource } from '../command-output.js';
import { readIdleMs } from './idle-time.js';

export class OwnerActivityMonitor {
  readonly #source: HostSource;
  readonly #intervalMs: number;
  readonly #onReading: () => void;
  readonly #abort = new AbortController();
  #polling: Promise<void> | null = null;
  #isEnabled = false;
  #idleMs: number | null = null;

  constructor(source: HostSource, intervalMs: number, onReading: () => void) {
    this.#source = source;
    this.#intervalMs = intervalMs;
    this.#onReading = onReading;
  }

  /** Idle time at the last reading, in milliseconds; null if unknown. */
  get idleMs(): number | null {
    return this.#idleMs;
  }

  /** Enables or disables polling. When enabled, resolves after the first reading. */
  async setEnabled(enabled: boolean): Promise<void> {
    this.#isEnabled = enabled;
    if (!enabled || this.#polling !== null) return;
    await this.#read();
    this.#polling ??= this.#poll();
  }

  async close(): Promise<void> {
    this.#abort.abort();
    await this.#polling;
  }

  async #poll(): Promise<void> {
    const { signal } = this.#abort;
    while (this.#isEnabled && !signal.aborted) {
      await delay(this.#intervalMs, undefined, { signal, ref: false }).catch(() => {});
      if (signal.aborted || !this.#isEnabled) break;
      await this.#read();
      if (!signal.aborted) this.#onReading();
    }
    this.#polling = null;
  }

  async #read(): Promise<void> {
    this.#idleMs = await readIdleMs(this.#source);
  }
}
