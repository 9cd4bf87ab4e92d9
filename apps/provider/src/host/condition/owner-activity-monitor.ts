/** `OwnerActivityMonitor` polls the time since the owner's last keyboard or mouse input, while enabled. */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { commandOutput, type HostSource } from '../command-output.js';

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

  /** Enables or disables polling. If enabled anew, resolves after the first reading. */
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

/** File in the folder of a simulated machine, with whole seconds since the owner's last input. */
export const SIMULATED_IDLE_FILE = 'run/owner-idle-seconds';
const IOREG = ['/usr/sbin/ioreg', '-r', '-d', '1', '-c', 'IOHIDSystem'] as const;
const LOGIND = [
  'busctl',
  'get-property',
  'org.freedesktop.login1',
  '/org/freedesktop/login1',
  'org.freedesktop.login1.Manager',
  'IdleHint',
  'IdleSinceHint',
] as const;

/** Milliseconds since the owner's last input; null if unknown. Never rejects. */
export async function readIdleMs({ platform, root }: HostSource): Promise<number | null> {
  if (root !== '/') return idleOfFile(await readFile(join(root, SIMULATED_IDLE_FILE), 'utf8').catch(() => ''));
  if (platform === 'darwin') return idleOfIoreg(await commandOutput(IOREG));
  return idleOfLogind(await commandOutput(LOGIND), Date.now());
}

/** Reads `"HIDIdleTime" = 4193219125`, in nanoseconds; of several, the shortest. Returns milliseconds, or null if missing. */
export function idleOfIoreg(text: string): number | null {
  const times = [...text.matchAll(/"HIDIdleTime"\s*=\s*(\d+)/g)].map(([, digits]) => Number(digits) / 1e6);
  return times.length === 0 ? null : Math.floor(Math.min(...times));
}

/** Reads `b true` (idle) and `t 1753862400000000` (since, in microseconds since 1970). Returns milliseconds, or null if unknown. */
export function idleOfLogind(text: string, now: number): number | null {
  const [hint, since] = text.trim().split('\n');
  if (hint === 'b false') return 0;
  const microseconds = /^t (\d+)$/.exec(since ?? '')?.[1];
  // With 0, the machine was never idle, or no session reports.
  if (hint !== 'b true' || microseconds === undefined || Number(microseconds) === 0) return null;
  return Math.max(0, now - Math.floor(Number(microseconds) / 1000));
}

function idleOfFile(text: string): number | null {
  const seconds = Number(text);
  return /^\d{1,9}\s*$/.test(text) ? seconds * 1000 : null;
}
