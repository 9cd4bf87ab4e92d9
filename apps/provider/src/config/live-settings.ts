/** `LiveSettings` polls `config.toml`, and applies changes to a running daemon. Reports settings that need a restart, and invalid files. */
import { statSync } from 'node:fs';
import type { Config } from './config.js';

interface LiveSettingsOptions {
  readonly path: string;
  readonly initial: Config;
  /** Reads the file. Throws an Error with a sentence for the owner. */
  readonly read: () => Config;
  /** Called if a setting changed. */
  readonly apply: (config: Config) => void;
  readonly onEvent: (event: SettingsEvent) => void;
  /** Polling interval in milliseconds, or 0 without polling. */
  readonly everyMs?: number;
}

export type SettingsEvent =
  | { readonly type: 'changed'; readonly changed: readonly string[]; readonly needsRestart: readonly string[] }
  | { readonly type: 'refused'; readonly problem: string };

export interface SettingsState {
  readonly path: string;
  /** Milliseconds since 1970. */
  readonly read_at: number;
  /** Reason why the present file is refused; null if accepted. */
  readonly problem: string | null;
  readonly needs_restart: string[];
}

/** Prefixes of settings that apply without a restart. */
export const LIVE_SETTINGS: readonly string[] = [
  'log_level',
  'remote_control',
  'notifications',
  'availability.',
  'models.keep',
  'models.idle_minutes',
  'models.reserve_gb',
  'update.',
];

const POLL_INTERVAL_MS = 2_000;

export class LiveSettings {
  /** Settings at the start, the reference for `needs_restart`. */
  readonly #initial: Config;
  #config: Config;
  #readAt = Date.now();
  #problem: string | null = null;
  /** At the last poll. Null at first, so that the first poll reads the file. */
  #fingerprint: string | null = null;
  readonly #timer: NodeJS.Timeout | null;

  constructor(private readonly options: LiveSettingsOptions) {
    this.#initial = options.initial;
    this.#config = options.initial;
    const interval = options.everyMs ?? POLL_INTERVAL_MS;
    this.#timer = interval > 0 ? setInterval(() => this.#poll(), interval) : null;
    this.#timer?.unref();
  }

  get config(): Config {
    return this.#config;
  }

  get state(): SettingsState {
    return { path: this.options.path, read_at: this.#readAt, problem: this.#problem, needs_restart: this.#needsRestart() };
  }

  /** Never throws; the returned state contains the problem. */
  reload(): SettingsState {
    const { read, apply, onEvent } = this.options;
    let config: Config;
    try {
      config = read();
    } catch (error) {
      const problem = error instanceof Error ? error.message : 'unknown';
      if (problem !== this.#problem) onEvent({ type: 'refused', problem });
      this.#problem = problem;
      return this.state;
    }
    const changed = differences(this.#config, config);
    const wasBroken = this.#problem !== null;
    this.#config = config;
    this.#readAt = Date.now();
    this.#problem = null;
    if (changed.length > 0) apply(config);
    if (changed.length > 0 || wasBroken) onEvent({ type: 'changed', changed, needsRestart: this.#needsRestart() });
    return this.state;
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
  }

  #poll(): void {
    const fingerprint = fingerprintOf(this.options.path);
    if (fingerprint !== this.#fingerprint) this.reload();
    this.#fingerprint = fingerprint;
  }

  #needsRestart(): string[] {
    return differences(this.#initial, this.#config).filter((name) => !LIVE_SETTINGS.some((prefix) => name.startsWith(prefix)));
  }
}

function fingerprintOf(path: string): string {
  try {
    const { ino, size, mtimeMs, ctimeMs } = statSync(path);
    return `${ino} ${size} ${mtimeMs} ${ctimeMs}`;
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  }
}

/** Names of differing settings, such as `models.slots`. */
export function differences(one: Config, other: Config): string[] {
  const [a, b] = [flat(one), flat(other)];
  return [...new Set([...a.keys(), ...b.keys()])].filter((name) => a.get(name) !== b.get(name)).sort();
}

function flat(config: Config): Map<string, string> {
  const settings = new Map<string, string>();
  for (const [name, value] of Object.entries(config)) {
    if (typeof value !== 'object') settings.set(name, JSON.stringify(value));
    else for (const [key, each] of Object.entries(value)) settings.set(`${name}.${key}`, JSON.stringify(each));
  }
  return settings;
}
