/** Hardware and system of a Linux machine, read from the texts of /proc, /sys and /etc. Pure. Developers and simulated networks run here. */
import { bandwidthOf, chipFacts } from '@inference/protocol';
import type { HostFacts } from './host-facts.js';

export const LINUX_FILES = {
  cpuinfo: 'proc/cpuinfo',
  meminfo: 'proc/meminfo',
  osRelease: 'etc/os-release',
  kernel: 'proc/sys/kernel/osrelease',
  product: 'sys/class/dmi/id/product_name',
  /** Read by root alone on most machines. */
  serial: 'sys/class/dmi/id/product_serial',
  /** Lists of processors such as `0-7,16`, on chips with two kinds. */
  fastCores: 'sys/devices/cpu_core/cpus',
  thriftyCores: 'sys/devices/cpu_atom/cpus',
} as const;

export type LinuxFacts = { readonly [Name in keyof typeof LINUX_FILES]: string } & {
  /** `cpu_capacity` of each processor. */
  readonly capacities: readonly string[];
};

export const NO_LINUX_FACTS: LinuxFacts = {
  cpuinfo: '',
  meminfo: '',
  osRelease: '',
  kernel: '',
  product: '',
  serial: '',
  fastCores: '',
  thriftyCores: '',
  capacities: [],
};

/** Missing values become 0 or empty, and `unknown` for the chip. */
export function linuxFacts(texts: LinuxFacts): HostFacts {
  const { cpuinfo, meminfo, osRelease, kernel, product, serial } = texts;
  const model = /^(?:model name|Model|Hardware)\s*:\s*(.+)$/m.exec(cpuinfo)?.[1]?.trim();
  const kilobytes = Number(/^MemTotal:\s*(\d+) kB$/m.exec(meminfo)?.[1] ?? 0);
  const chip = (model || 'unknown').slice(0, 64);
  const known = chipFacts(chip);
  return {
    chip,
    chipFamily: known?.family ?? chip,
    cpuCores: Math.max(1, coreCount(cpuinfo)),
    ...kindsOf(texts),
    gpuCores: 0,
    memoryBytes: kilobytes * 1024,
    bandwidthGbs: known === null ? 0 : bandwidthOf(known, 0),
    osName: setting(osRelease, 'NAME'),
    osVersion: setting(osRelease, 'VERSION_ID'),
    osBuild: firstLine(kernel),
    modelIdentifier: firstLine(product),
    serialNumber: firstLine(serial),
  };
}

/** Counts hardware threads of one core once. Without core ids every processor counts. */
function coreCount(cpuinfo: string): number {
  const blocks = cpuinfo.split(/\n\s*\n/).filter((block) => /^processor\s*:/m.test(block));
  const cores = new Set(
    blocks.map((block, index) => {
      const core = /^core id\s*:\s*(\d+)/m.exec(block)?.[1];
      return core === undefined ? `processor ${index}` : `${/^physical id\s*:\s*(\d+)/m.exec(block)?.[1] ?? 0} ${core}`;
    }),
  );
  return cores.size;
}

function kindsOf({ fastCores, thriftyCores, capacities }: LinuxFacts): Pick<HostFacts, 'performanceCores' | 'efficiencyCores'> {
  const strengths = capacities.map((text) => Number(text)).filter((strength) => strength > 0);
  const max = Math.max(0, ...strengths);
  const strong = strengths.filter((strength) => strength === max).length;
  if (strong > 0 && strong < strengths.length) return { performanceCores: strong, efficiencyCores: strengths.length - strong };
  const [fast, thrifty] = [listLength(fastCores), listLength(thriftyCores)];
  // Performance cores list two hardware threads each.
  return fast > 0 && thrifty > 0
    ? { performanceCores: Math.ceil(fast / 2), efficiencyCores: thrifty }
    : { performanceCores: null, efficiencyCores: null };
}

/** Length of a list such as `0-7,16`. */
function listLength(text: string): number {
  let length = 0;
  for (const part of text.trim().split(',')) {
    const range = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(part);
    if (range !== null) length += Math.max(0, Number(range[2] ?? range[1]) - Number(range[1]) + 1);
  }
  return length;
}

function setting(text: string, name: string): string {
  const value = new RegExp(`^${name}=(.*)$`, 'm').exec(text)?.[1]?.trim() ?? '';
  return value.replace(/^(["'])(.*)\1$/, '$2').slice(0, 64);
}

function firstLine(text: string): string {
  return (text.split('\n', 1)[0] ?? '').trim().slice(0, 64);
}
