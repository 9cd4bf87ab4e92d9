/** `ConditionMonitor` reads heat, memory pressure and power of this machine every few seconds, and reports changes. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { commandOutput, type HostSource } from '../command-output.js';
import { ConditionFilter, type HostCondition, powerOf, worse } from './condition.js';
import { type Folder, linuxCondition } from './linux-condition.js';

/** Interval between two readings, in milliseconds. The readings take well under 1 % of a core. */
export const POLL_INTERVAL_MS = 10_000;

export class ConditionMonitor {
  readonly #filter = new ConditionFilter();
  readonly #abort = new AbortController();
  readonly #done: Promise<void>;
  #resolveFirst: () => void = () => {};
  /** Resolves after the first reading of the machine. */
  readonly firstReading: Promise<void>;

  /** Reads at once, and then `everyMs` after each reading. */
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
    const [thermalWarning, battery, thermalPressure, memoryLevel] = await Promise.all([
      commandOutput(MAC_COMMANDS.thermalWarning),
      commandOutput(MAC_COMMANDS.battery),
      commandOutput(MAC_COMMANDS.thermalPressure),
      commandOutput(MAC_COMMANDS.memoryLevel),
    ]);
    return macCondition({ thermalWarning, battery, thermalPressure, memoryLevel });
  }
  const [zones, supplies, pressure] = await Promise.all([
    folders(join(root, 'sys/class/thermal'), /^thermal_zone\d+$/, /^(?:temp|trip_point_\d+_(?:temp|type))$/),
    folders(join(root, 'sys/class/power_supply'), /^[^.]/, /^(?:type|scope|online|status|capacity)$/),
    contents(join(root, 'proc/pressure/memory')),
  ]);
  return linuxCondition({ zones, supplies, pressure });
}

/** Reads the files that match `filePattern` in each folder of `parent` that matches `folderPattern`. */
async function folders(parent: string, folderPattern: RegExp, filePattern: RegExp): Promise<Folder[]> {
  const names = (await list(parent)).filter((name) => folderPattern.test(name));
  return Promise.all(
    names.map(async (name) => {
      const inside = (await list(join(parent, name))).filter((file) => filePattern.test(file));
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

/** Commands that report the condition of a Mac, and need no root. */
const MAC_COMMANDS = {
  /** See pmset(1). */
  thermalWarning: ['/usr/bin/pmset', '-g', 'therm'],
  battery: ['/usr/bin/pmset', '-g', 'batt'],
  /** OSThermalNotification.h. */
  thermalPressure: ['/usr/bin/notifyutil', '-g', 'com.apple.system.thermalpressurelevel'],
  memoryLevel: ['/usr/sbin/sysctl', '-n', 'kern.memorystatus_vm_pressure_level'],
} as const;

/** Output of each command. */
export type MacTexts = { readonly [Name in keyof typeof MAC_COMMANDS]: string };

/** Missing or unknown output is treated as normal. */
export function macCondition(texts: MacTexts): HostCondition {
  return {
    thermal: worse('thermal', heatOfPressure(texts.thermalPressure), heatOfWarning(texts.thermalWarning)),
    memoryPressure: memoryPressureOf(texts.memoryLevel),
    power: powerOfBattery(texts.battery),
  };
}

/** Reads `com.apple.system.thermalpressurelevel 1`. Levels 0 to 4: nominal, moderate, heavy, trapping, sleeping. */
function heatOfPressure(text: string): HostCondition['thermal'] {
  const level = Number(/thermalpressurelevel\s+(\d+)\s*$/m.exec(text)?.[1] ?? 0);
  return (['nominal', 'fair', 'serious', 'critical', 'critical'] as const)[level] ?? 'nominal';
}

/** Levels of IOPM.h: 5 danger, 100 warning, 10 critical, 110 trap. A CPU speed limit below 100 % means throttling. */
function heatOfWarning(text: string): HostCondition['thermal'] {
  const level = Number(/Thermal Warning Level\s*=\s*(\d+)/i.exec(text)?.[1] ?? 0);
  if (level === 10 || level === 110) return 'critical';
  const limit = Number(/CPU_Speed_Limit\s*=\s*(\d+)/.exec(text)?.[1] ?? 100);
  if (level === 5 || level === 100 || limit < 70) return 'serious';
  return limit < 100 ? 'fair' : 'nominal';
}

/** Reads a level: 1 normal, 2 warning, 4 critical. */
function memoryPressureOf(text: string): HostCondition['memoryPressure'] {
  const level = text.trim();
  if (level === '4') return 'critical';
  return level === '2' ? 'warning' : 'normal';
}

/** Reads `Now drawing from 'Battery Power'`, and the charge from `85%; discharging`. A UPS is treated as a battery. */
function powerOfBattery(text: string): HostCondition['power'] {
  const source = /Now drawing from '([^']+)'/.exec(text)?.[1];
  const percent = /\t(\d{1,3})%;/.exec(text)?.[1];
  return powerOf(source === 'Battery Power' || source === 'UPS Power', percent === undefined ? null : Number(percent));
}
