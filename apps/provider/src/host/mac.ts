/** Hardware of a Mac, read from the texts that `sysctl` and `ioreg` print without root. Pure. */
import { bandwidthGbs } from './bandwidth.js';
import type { HostFacts } from './host-facts.js';

/** Arguments of `/usr/sbin/sysctl`; the output is one `name: value` line each. */
export const SYSCTL_ARGUMENTS = ['machdep.cpu.brand_string', 'hw.memsize', 'hw.physicalcpu'] as const;
/** Arguments of `/usr/sbin/ioreg`; the output is an XML property list. */
export const IOREG_ARGUMENTS = ['-a', '-rc', 'AGXAccelerator', '-d', '1'] as const;

/** Facts from the two outputs. What is missing in them becomes 0, or `unknown` for the chip. */
export function macFacts(sysctl: string, ioreg: string): HostFacts {
  const values = new Map<string, string>();
  for (const line of sysctl.split('\n')) {
    const colon = line.indexOf(':');
    if (colon > 0) values.set(line.slice(0, colon).trim(), line.slice(colon + 1).trim());
  }
  const chip = (values.get('machdep.cpu.brand_string') || 'unknown').slice(0, 64);
  const gpuCores = integer(/<key>gpu-core-count<\/key>\s*<integer[^>]*>(\d+)<\/integer>/.exec(ioreg)?.[1]);
  return {
    chip,
    chipFamily: /^Apple (M\d+)\b/.exec(chip)?.[1] ?? chip,
    cpuCores: Math.max(1, integer(values.get('hw.physicalcpu'))),
    gpuCores,
    memoryBytes: integer(values.get('hw.memsize')),
    bandwidthGbs: bandwidthGbs(chip, gpuCores),
  };
}

function integer(text: string | undefined): number {
  const value = Number.parseInt(text ?? '', 10);
  return Number.isSafeInteger(value) && value >= 0 ? value : 0;
}
