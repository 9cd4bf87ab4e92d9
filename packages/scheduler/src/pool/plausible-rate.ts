/**
 * Upper bound of plausible decode rates (generated tokens per second), derived from measured rates of the model's providers.
 *
 * A provider that bills hidden tokens faster than that is not believed. `MAX_RATE_FACTOR` is generous, because machines differ.
 */
import type { Hardware } from '@inference/protocol';
import type { ThroughputEstimate } from '../cost/job-cost.js';
import { estimateFromHardware } from '../cost/throughput-stats.js';
import type { PoolMember } from './provider-groups.js';

export interface MeasuredRate {
  readonly speed: ThroughputEstimate;
  readonly hardware: Hardware;
}

/** Maximum ratio of a plausible rate to a measured rate on a machine of equal memory bandwidth. */
const MAX_RATE_FACTOR = 16;
/** Minimum measured answers before a rate serves as a reference. */
export const MIN_RATE_SAMPLES = 16;
/** Rates up to this value are plausible on any machine, in tokens per second. */
export const ALWAYS_PLAUSIBLE_TPS = 256;
/** Assumed memory bandwidth of machines that report none, in GB/s. */
const DEFAULT_BANDWIDTH_GBS = 100;

/** Whether the provider's machine can reach this rate. A provider with few samples is also compared with its hardware estimate. */
export function isPlausibleRate(
  tokensPerSecond: number,
  { speed: own, hardware }: MeasuredRate,
  measured: Iterable<MeasuredRate>,
): boolean {
  if (tokensPerSecond <= ALWAYS_PLAUSIBLE_TPS) return true;
  if (own.samples < MIN_RATE_SAMPLES && tokensPerSecond <= MAX_RATE_FACTOR * estimateFromHardware(hardware).decodeTps) return true;
  let hasReference = false;
  for (const { speed, hardware: other } of measured) {
    if (speed.samples < MIN_RATE_SAMPLES) continue;
    hasReference = true;
    const bandwidthRatio = Math.max(1, bandwidthOf(hardware) / bandwidthOf(other));
    if (tokensPerSecond <= MAX_RATE_FACTOR * bandwidthRatio * speed.decodeTps) return true;
  }
  return !hasReference;
}

/** Highest reference rates of a model's providers. */
export interface FastestRates {
  /** Decode rate in tokens per second, and per GB/s of memory bandwidth; both 0 without a reference. */
  readonly decodeTps: number;
  readonly decodeTpsPerGbs: number;
}

export function fastestRates(measured: Iterable<MeasuredRate>): FastestRates {
  let decodeTps = 0;
  let decodeTpsPerGbs = 0;
  for (const { speed, hardware } of measured) {
    if (speed.samples < MIN_RATE_SAMPLES) continue;
    decodeTps = Math.max(decodeTps, speed.decodeTps);
    decodeTpsPerGbs = Math.max(decodeTpsPerGbs, speed.decodeTps / bandwidthOf(hardware));
  }
  return { decodeTps, decodeTpsPerGbs };
}

/** The highest rate for which {@link isPlausibleRate} holds, in tokens per second; Infinity without a reference. */
export function maxPlausibleRate({ speed: own, hardware }: MeasuredRate, { decodeTps, decodeTpsPerGbs }: FastestRates): number {
  if (decodeTps === 0) return Number.POSITIVE_INFINITY;
  const ofHardware = own.samples < MIN_RATE_SAMPLES ? estimateFromHardware(hardware).decodeTps : 0;
  const ofMeasured = Math.max(decodeTps, decodeTpsPerGbs * bandwidthOf(hardware));
  return Math.max(ALWAYS_PLAUSIBLE_TPS, MAX_RATE_FACTOR * Math.max(ofHardware, ofMeasured));
}

export function* measuredRates(
  members: Iterable<PoolMember<{ readonly registration: { readonly hardware: Hardware } }>>,
): Iterable<MeasuredRate> {
  for (const { subject, speed } of members) yield { speed, hardware: subject.registration.hardware };
}

function bandwidthOf({ bandwidth_gbs }: Hardware): number {
  return bandwidth_gbs === 0 ? DEFAULT_BANDWIDTH_GBS : bandwidth_gbs;
}
