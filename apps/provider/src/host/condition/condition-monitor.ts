/** `ConditionMonitor` reads the host condition every few seconds, with timeouts, and reports changes. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { commandOutput, type HostSource } from '../command-output.js';
import { ConditionFilter, type HostCondition } from './condition.js';
import { type Folder, linuxCondition } from './linux-condition.js';
import { MAC_COMMANDS, macCondition } from './mac-condition.js';

/** Interval between two readings, in milliseconds. The readings take well under 1 % of a core. */
export const POLL_INTERVAL_MS = 10_000;

export class ConditionMonitor {
  readonly #filter = new ConditionFilter();
  readonly #abort = new AbortController();
  readonly #done: Promise<void>;
  #resolveFirst: () => void = () => {};
  /** Resolves after the first reading of the machine. */
  readonly firstReading: Promise<void>;

  /** Reads at once, and then every `everyMs`. */
  constructor(source: HostSource, everyMs: number, onChange: (condition: HostCondition) => void) {
    this.firstReading = new Promise((resolve) => {
      this.#resolveFirst = resolve;
    });
    this.#done = this.#watch(source, everyMs, onChange);
  }

  get condition(): HostCondition {
    return this.#filter.current;
  }

  async close(): Promise<void> {
    this.#abort.abort();
    await this.#done;
  }

  async #watch(source: HostSource, everyMs: number, onChange: (condition: HostCondition) => void): Promise<void> {
    const { signal } = this.#abort;
    while (!signal.aborted) {
      const reading = await readCondition(source);
      if (!signal.aborted && this.#filter.update(reading)) onChange(this.#filter.current);
      this.#resolveFirst();
      await delay(everyMs, undefined, { signal, ref: false }).catch(() => {});
    }
  }
}

/** Never rejects. An unreadable value is treated as normal. */
export async function readCondition({ platform, root }: HostSource): Promise<HostCondition> {
  if (platform === 'darwin') {
    const [therm, batt, pressure, memory] = await Promise.all([
      commandOutput(MAC_COMMANDS.therm),
      commandOutput(MAC_COMMANDS.batt),
      commandOutput(MAC_COMMANDS.pressure),
      commandOutput(MAC_COMMANDS.memory),
    ]);
    return macCondition({ therm, batt, pressure, memory });
  }
  const [zones, supplies, pressure] = await Promise.all([
    folders(join(root, 'sys/class/thermal'), /^thermal_zone\d+$/, /^(?:temp|trip_point_\d+_(?:temp|type))$/),
    folders(join(root, 'sys/class/power_supply'), /^[^.]/, /^(?:type|scope|online|status|capacity)$/),
    contents(join(root, 'proc/pressure/memory')),
  ]);
  return linuxCondition({ zones, supplies, pressure });
}

async function folders(parent: string, pattern: RegExp, files: RegExp): Promise<Folder[]> {
  const names = (await list(parent)).filter((name) => pattern.test(name));
  return Promise.all(
    names.map(async (name) => {
      const inside = (await list(join(parent, name))).filter((file) => files.test(file));
      return Object.fromEntries(await Promise.all(inside.map(async (file) => [file, await contents(join(parent, name, file))] as const)));
    }),
  );
}

async function list(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}

async function contents(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '');
}
