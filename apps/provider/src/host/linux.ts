/** Hardware of a Linux machine, read from the texts of /proc. Pure. Developers and simulated networks run here. */
import type { HostFacts } from './host-facts.js';

/** Facts from `/proc/cpuinfo` and `/proc/meminfo`. */
export function linuxFacts(cpuinfo: string, meminfo: string): HostFacts {
  const processors = cpuinfo.match(/^processor\s*:/gm)?.length ?? 0;
  const model = /^(?:model name|Model|Hardware)\s*:\s*(.+)$/m.exec(cpuinfo)?.[1]?.trim();
  const kilobytes = Number(/^MemTotal:\s*(\d+) kB$/m.exec(meminfo)?.[1] ?? 0);
  const chip = (model || 'unknown').slice(0, 64);
  return {
    chip,
    chipFamily: chip,
    cpuCores: Math.max(1, processors),
    gpuCores: 0,
    memoryBytes: kilobytes * 1024,
    bandwidthGbs: 0,
  };
}
