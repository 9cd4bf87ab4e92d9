/** Hardware of a Linux machine, from texts of /proc, /sys and /etc. Linux machines are for development and simulation. */
import { bandwidthOf, chipFacts } from '@inference/protocol';
import type { HostFacts } from './host-facts.js';

export const LINUX_FILES = {
  cpuinfo: 'proc/cpuinfo',
  meminfo: 'proc/meminfo',
  osRelease: 'etc/os-release',
  kernel: 'proc/sys/kernel/osrelease',
  product: 'sys/class/dmi/id/product_name',
  /** Usually readable by root only. */
  serial: 'sys/class/dmi/id/product_serial',
  /** CPU lists of hybrid chips, such as `0-7,16`. */
  performanceCpus: 'sys/devices/cpu_core/cpus',
  efficiencyCpus: 'sys/devices/cpu_atom/cpus',
} as const;

export type LinuxFactTexts = { readonly [Name in keyof typeof LINUX_FILES]: string } & {
  /** `cpu_capacity` of each processor. */
  readonly capacities: readonly string[];
};

export const NO_LINUX_TEXTS: LinuxFactTexts = {
  cpuinfo: '',
  meminfo: '',
  osRelease: '',
  kernel: '',
  product: '',
  serial: '',
  performanceCpus: '',
  efficiencyCpus: '',
  capacities: [],
};

/** Missing values: `unknown` for chip and family, 1 for `cpuCores`, null for core kinds, otherwise 0 or empty. */
export function linuxFacts(texts: LinuxFactTexts): HostFacts {
  const { cpuinfo, meminfo, osRelease, kernel, product, serial } = texts;
  const model = /^(?:model name|Model|Hardware)\s*:\s*(.+)$/m.exec(cpuinfo)?.[1]?.trim();
  const kilobytes = Number(/^MemTotal:\s*(\d+) kB$/m.exec(meminfo)?.[1] ?? 0);
  const chip = (model || 'unknown').slice(0, 64);
  const known = chipFacts(chip);
  return {
    chip,
    chipFamily: known?.family ?? chip,
    cpuCores: Math.max(1, coreCount(cpuinfo)),
    ...coreKinds(texts),
    gpuCores: 0,
    memoryBytes: kilobytes * 1024,
    bandwidthGbs: known === null ? 0 : bandwidthOf(known, 0),
    osName: osReleaseField(osRelease, 'NAME'),
    osVersion: osReleaseField(osRelease, 'VERSION_ID'),
    osBuild: firstLine(kernel),
    modelIdentifier: firstLine(product),
    serialNumber: firstLine(serial),
  };
}

/** Physical cores. Without core ids, each logical processor counts as one core. */
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

function coreKinds({
  performanceCpus,
  efficiencyCpus,
  capacities,
}: LinuxFactTexts): Pick<HostFacts, 'performanceCores' | 'efficiencyCores'> {
  const cpuCapacities = capacities.map((text) => Number(text)).filter((capacity) => capacity > 0);
  const max = Math.max(0, ...cpuCapacities);
  const fastest = cpuCapacities.filter((capacity) => capacity === max).length;
  if (fastest > 0 && fastest < cpuCapacities.length) return { performanceCores: fastest, efficiencyCores: cpuCapacities.length - fastest };
  const [fast, thrifty] = [listLength(performanceCpus), listLength(efficiencyCpus)];
  // Assumes two hardware threads per performance core (SMT), and one per efficiency core.
  return fast > 0 && thrifty > 0
    ? { performanceCores: Math.ceil(fast / 2), efficiencyCores: thrifty }
    : { performanceCores: null, efficiencyCores: null };
}

/** Number of processors in a list such as `0-7,16`. */
function listLength(text: string): number {
  let length = 0;
  for (const part of text.trim().split(',')) {
    const range = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(part);
    if (range !== null) length += Math.max(0, Number(range[2] ?? range[1]) - Number(range[1]) + 1);
  }
  return length;
}

function osReleaseField(text: string, name: string): string {
  const value = new RegExp(`^${name}=(.*)$`, 'm').exec(text)?.[1]?.trim() ?? '';
  return value.replace(/^(["'])(.*)\1$/, '$2').slice(0, 64);
}

function firstLine(text: string): string {
  return (text.split('\n', 1)[0] ?? '').trim().slice(0, 64);
}
