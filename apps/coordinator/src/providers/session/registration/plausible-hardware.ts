/** `plausibleHardware` lowers reported cores, memory and rates to the maximum of the signed chip name. Proves nothing. */
import { type Attestation, bandwidthOf, type ChipFacts, chipFacts, type Hardware } from '@inference/protocol';

interface PlausibleHardware {
  readonly hardware: Hardware;
  /** Unified memory in GiB. */
  readonly memoryGb: number;
  /** Names of reported members that were changed. */
  readonly adjusted: readonly string[];
}

/** For a chip that is not in the table: above every current machine. */
const DEFAULT_MAX = { cpuCores: 512, gpuCores: 512, memoryGb: 4096, bandwidthGbs: 2000 } as const;

/** Gigabytes of the smallest useful model. Each token reads the whole model once. */
const SMALLEST_MODEL_GB = 0.05;
/** Tokens per second, where the bandwidth is not known. */
const MAX_DECODE_TPS = 5000;
/** A prompt's tokens are computed together. */
const MAX_PREFILL_PER_DECODE = 50;

export function plausibleHardware(
  reported: Hardware,
  { chip_name, memory_gb }: Pick<Attestation, 'chip_name' | 'memory_gb'>,
): PlausibleHardware {
  const chip = chipFacts(chip_name);
  const max = chip ?? DEFAULT_MAX;
  const cpu_cores = Math.min(reported.cpu_cores, max.cpuCores);
  const gpu_cores = Math.min(reported.gpu_cores, max.gpuCores);
  const hardware: Hardware = {
    chip_family: chip?.family ?? reported.chip_family,
    cpu_cores,
    gpu_cores,
    bandwidth_gbs: plausibleBandwidth(reported.bandwidth_gbs, gpu_cores, chip),
    ...coresOf(reported, cpu_cores),
    ...(reported.os_name === undefined ? {} : { os_name: reported.os_name }),
    ...(reported.os_version === undefined ? {} : { os_version: reported.os_version }),
    ...(reported.os_build === undefined ? {} : { os_build: reported.os_build }),
  };
  const memoryGb = Math.min(memory_gb, max.memoryGb);
  const names = ['chip_family', 'cpu_cores', 'gpu_cores', 'bandwidth_gbs', 'performance_cores', 'efficiency_cores'] as const;
  // Agents without a known bandwidth of the chip report 0, which is not a false report.
  const adjusted = names.filter((name) => hardware[name] !== reported[name] && !(name === 'bandwidth_gbs' && reported[name] === 0));
  return { hardware, memoryGb, adjusted: [...adjusted, ...(memoryGb === memory_gb ? [] : ['memory_gb'])] };
}

/** Limits a decode rate by the memory bandwidth, in tokens per second. */
export function plausibleDecodeTps(reported: number, { bandwidth_gbs }: Hardware): number {
  return Math.min(reported, maxDecodeTps(bandwidth_gbs));
}

/** Limits a prefill rate likewise, in tokens per second. */
export function plausiblePrefillTps(reported: number, { bandwidth_gbs }: Hardware): number {
  return Math.min(reported, MAX_PREFILL_PER_DECODE * maxDecodeTps(bandwidth_gbs));
}

function maxDecodeTps(bandwidthGbs: number): number {
  return bandwidthGbs === 0 ? MAX_DECODE_TPS : bandwidthGbs / SMALLEST_MODEL_GB;
}

function plausibleBandwidth(reported: number, gpuCores: number, chip: ChipFacts | null): number {
  return chip === null ? Math.min(reported, DEFAULT_MAX.bandwidthGbs) : bandwidthOf(chip, gpuCores);
}

/** Core counts that do not add up are dropped. */
function coresOf({ performance_cores: performance, efficiency_cores: efficiency }: Hardware, all: number): Partial<Hardware> {
  if (performance === undefined || efficiency === undefined || performance + efficiency > all) return {};
  return { performance_cores: performance, efficiency_cores: efficiency };
}
