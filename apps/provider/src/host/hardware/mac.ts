/** Hardware and system of a Mac: the commands to run, which need no root, and the conversion of their output. */
import { bandwidthOf, chipFacts } from '@inference/protocol';
import type { HostFacts } from './host-facts.js';

/** Numbers of kinds of cores in `sysctl` (performance levels), fastest first. Macs have two today; a third costs nothing. */
const LEVELS = [0, 1, 2] as const;

export const MAC_FACTS = {
  /** Prints one `name: value` line each. */
  sysctl: [
    '/usr/sbin/sysctl',
    'machdep.cpu.brand_string',
    'hw.memsize',
    'hw.physicalcpu',
    'hw.model',
    ...LEVELS.flatMap((level) => [`hw.perflevel${level}.physicalcpu`, `hw.perflevel${level}.name`]),
  ],
  /** An XML property list. */
  gpu: ['/usr/sbin/ioreg', '-a', '-rc', 'AGXAccelerator', '-d', '1'],
  platform: ['/usr/sbin/ioreg', '-rd1', '-c', 'IOPlatformExpertDevice'],
  system: ['/usr/bin/sw_vers'],
} as const satisfies Record<string, readonly [string, ...string[]]>;

export type MacFactTexts = { readonly [Name in keyof typeof MAC_FACTS]: string };

/** Missing values become 0 or empty, and `unknown` for the chip. */
export function macFacts({ sysctl, gpu, platform, system }: MacFactTexts): HostFacts {
  const values = linesOf(sysctl);
  const versions = linesOf(system);
  const chip = (values.get('machdep.cpu.brand_string') || 'unknown').slice(0, 64);
  const known = chipFacts(chip);
  const gpuCores = integer(/<key>gpu-core-count<\/key>\s*<integer[^>]*>(\d+)<\/integer>/.exec(gpu)?.[1]);
  return {
    chip,
    chipFamily: known?.family ?? /^Apple (M\d+)\b/.exec(chip)?.[1] ?? chip,
    cpuCores: Math.max(1, integer(values.get('hw.physicalcpu'))),
    ...coresOf(values),
    gpuCores,
    memoryBytes: integer(values.get('hw.memsize')),
    bandwidthGbs: known === null ? 0 : bandwidthOf(known, gpuCores),
    osName: versions.get('ProductName') ?? '',
    osVersion: versions.get('ProductVersion') ?? '',
    osBuild: versions.get('BuildVersion') ?? '',
    modelIdentifier: values.get('hw.model') ?? '',
    serialNumber: /"IOPlatformSerialNumber"\s*=\s*"([^"]{1,64})"/.exec(platform)?.[1] ?? '',
  };
}

/** An unnamed first level counts as performance cores, any other as efficiency cores. */
function coresOf(values: ReadonlyMap<string, string>): Pick<HostFacts, 'performanceCores' | 'efficiencyCores'> {
  if (!values.has('hw.perflevel0.physicalcpu')) return { performanceCores: null, efficiencyCores: null };
  let [performanceCores, efficiencyCores] = [0, 0];
  for (const level of LEVELS) {
    const cores = integer(values.get(`hw.perflevel${level}.physicalcpu`));
    const name = values.get(`hw.perflevel${level}.name`);
    if (name === undefined ? level > 0 : /^effic/i.test(name)) efficiencyCores += cores;
    else performanceCores += cores;
  }
  return { performanceCores, efficiencyCores };
}

function linesOf(text: string): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  for (const line of text.split('\n')) {
    const colon = line.indexOf(':');
    if (colon > 0) values.set(line.slice(0, colon).trim(), line.slice(colon + 1).trim());
  }
  return values;
}

function integer(text: string | undefined): number {
  const value = Number.parseInt(text ?? '', 10);
  return Number.isSafeInteger(value) && value >= 0 ? value : 0;
}
