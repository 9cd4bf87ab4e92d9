/**
 * What is believed of the hardware that a provider tells of itself: its chip is signed by its enclave, and cores, memory and rates that
 * no such machine has are brought to the most that one has. Pure. Nothing of it is proved; it only cannot be absurd.
 */
import { type Attestation, bandwidthOf, type ChipFacts, chipFacts, type Hardware } from '@inference/protocol';

export interface PlausibleHardware {
  readonly hardware: Hardware;
  /** Unified memory in GiB. */
  readonly memoryGb: number;
  /** Names of what was told and not taken as it was. */
  readonly adjusted: readonly string[];
}

/** For a chip that is not in the table: more than any machine of today has. */
const DEFAULT_MAX = { cpuCores: 512, gpuCores: 512, memoryGb: 4096, bandwidthGbs: 2000 } as const;

/** Gigabytes of the smallest model that is worth serving; every token reads it once. */
const SMALLEST_MODEL_GB = 0.05;
/** Tokens per second, where the bandwidth is not known. */
const MAX_DECODE_TPS = 5000;
/** A prompt's tokens are computed together. */
const MAX_PREFILL_PER_DECODE = 50;

export function plausibleHardware(
  told: Hardware,
  { chip_name, memory_gb }: Pick<Attestation, 'chip_name' | 'memory_gb'>,
): PlausibleHardware {
  const chip = chipFacts(chip_name);
  const max = chip ?? DEFAULT_MAX;
  const cpu_cores = Math.min(told.cpu_cores, max.cpuCores);
  const gpu_cores = Math.min(told.gpu_cores, max.gpuCores);
  const hardware: Hardware = {
    chip_family: chip?.family ?? told.chip_family,
    cpu_cores,
    gpu_cores,
    bandwidth_gbs: plausibleBandwidth(told.bandwidth_gbs, gpu_cores, chip),
    ...coresOf(told, cpu_cores),
    ...(told.os_name === undefined ? {} : { os_name: told.os_name }),
    ...(told.os_version === undefined ? {} : { os_version: told.os_version }),
    ...(told.os_build === undefined ? {} : { os_build: told.os_build }),
  };
  const memoryGb = Math.min(memory_gb, max.memoryGb);
  const names = ['chip_family', 'cpu_cores', 'gpu_cores', 'bandwidth_gbs', 'performance_cores', 'efficiency_cores'] as const;
  // An agent that does not know a chip's bandwidth says 0, and is told nothing wrong.
  const adjusted = names.filter((name) => hardware[name] !== told[name] && !(name === 'bandwidth_gbs' && told[name] === 0));
  return { hardware, memoryGb, adjusted: [...adjusted, ...(memoryGb === memory_gb ? [] : ['memory_gb'])] };
}

/** A decode rate that a machine with such memory can have, in tokens per second. */
export function plausibleDecodeTps(told: number, { bandwidth_gbs }: Hardware): number {
  return Math.min(told, maxDecodeTps(bandwidth_gbs));
}

/** The same for the reading of a prompt. */
export function plausiblePrefillTps(told: number, { bandwidth_gbs }: Hardware): number {
  return Math.min(told, MAX_PREFILL_PER_DECODE * maxDecodeTps(bandwidth_gbs));
}

function maxDecodeTps(bandwidthGbs: number): number {
  return bandwidthGbs === 0 ? MAX_DECODE_TPS : bandwidthGbs / SMALLEST_MODEL_GB;
}

function plausibleBandwidth(told: number, gpuCores: number, chip: ChipFacts | null): number {
  return chip === null ? Math.min(told, DEFAULT_MAX.bandwidthGbs) : bandwidthOf(chip, gpuCores);
}

/** Kinds of cores that do not add up tell nothing. */
function coresOf({ performance_cores: fast, efficiency_cores: thrifty }: Hardware, all: number): Partial<Hardware> {
  if (fast === undefined || thrifty === undefined || fast + thrifty > all) return {};
  return { performance_cores: fast, efficiency_cores: thrifty };
}
