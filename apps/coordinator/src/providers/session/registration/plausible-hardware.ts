/**
 * `plausibleHardware` limits the reported cores and memory to the maximum of the attested chip, and takes its bandwidth from a table.
 *
 * This bounds exaggeration but proves nothing, because a modified agent chooses the chip name.
 */
import { type Attestation, bandwidthOf, type ChipFacts, chipFacts, type Hardware } from '@inference/protocol';

interface PlausibleHardware {
  readonly hardware: Hardware;
  /** Unified memory in GiB. */
  readonly memoryGb: number;
  /** Names of the reported members that were lowered or corrected. */
  readonly adjusted: readonly string[];
}

/** Limits for an unknown chip, above those of every current machine. */
const DEFAULT_MAX = { cpuCores: 512, gpuCores: 512, memoryGb: 4096, bandwidthGbs: 2000 } as const;

/** Size of the smallest useful model in GB. Decoding a token reads the whole model once from memory. */
const SMALLEST_MODEL_GB = 0.05;
/** Maximum decode rate in tokens per second, if the memory bandwidth is unknown. */
const MAX_DECODE_TPS = 5000;
/** Maximum ratio of prefill rate to decode rate. Prefill computes many tokens at once. */
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
  // Agents report 0 if they do not know the chip's bandwidth, which is no false report.
  const adjusted = names.filter((name) => hardware[name] !== reported[name] && !(name === 'bandwidth_gbs' && reported[name] === 0));
  return { hardware, memoryGb, adjusted: [...adjusted, ...(memoryGb === memory_gb ? [] : ['memory_gb'])] };
}

/** Limits a decode rate, in tokens per second, to the maximum of the memory bandwidth. */
export function plausibleDecodeTps(reported: number, { bandwidth_gbs }: Hardware): number {
  return Math.min(reported, maxDecodeTps(bandwidth_gbs));
}

/** Limits a prefill rate, in tokens per second, to the maximum of the memory bandwidth. */
export function plausiblePrefillTps(reported: number, { bandwidth_gbs }: Hardware): number {
  return Math.min(reported, MAX_PREFILL_PER_DECODE * maxDecodeTps(bandwidth_gbs));
}

function maxDecodeTps(bandwidthGbs: number): number {
  return bandwidthGbs === 0 ? MAX_DECODE_TPS : bandwidthGbs / SMALLEST_MODEL_GB;
}

function plausibleBandwidth(reported: number, gpuCores: number, chip: ChipFacts | null): number {
  return chip === null ? Math.min(reported, DEFAULT_MAX.bandwidthGbs) : bandwidthOf(chip, gpuCores);
}

/** Counts of both kinds of cores. Empty if they are missing or exceed the total. */
function coresOf({ performance_cores: performance, efficiency_cores: efficiency }: Hardware, all: number): Partial<Hardware> {
  if (performance === undefined || efficiency === undefined || performance + efficiency > all) return {};
  return { performance_cores: performance, efficiency_cores: efficiency };
}
