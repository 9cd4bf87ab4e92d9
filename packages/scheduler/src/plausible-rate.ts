/**
 * Whether a reported decode rate is possible, compared with measured rates of the model's providers. Pure. The factor is generous:
 * machines differ, and a measurement may be from a bad moment.
 */
import type { Hardware } from '@inference/protocol';
import type { ThroughputEstimate } from './job-cost.js';
import type { PoolMember } from './provider-groups.js';
import { estimateFromHardware } from './throughput-stats.js';

interface MeasuredRate {
  readonly speed: ThroughputEstimate;
  readonly hardware: Hardware;
}

/** Maximum ratio to a measured rate, for machines of equal memory bandwidth. */
const MAX_RATE_FACTOR = 16;
/** Answers before a rate serves as a reference. */
export const MIN_RATE_SAMPLES = 16;
/** Rates up to this are possible on every machine, in tokens per second. */
export const ALWAYS_PLAUSIBLE_TPS = 256;
/** Memory bandwidth assumed for machines that report none, in GB/s. */
const DEFAULT_BANDWIDTH_GBS = 100;

/**
 * `own`: measurements of the provider itself. Until they serve as a reference, rates of small models on such hardware are possible,
 * because the only other providers may be slow on purpose.
 */
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

/** The measured rates of the members of a board. */
export function* measuredRates(
  members: Iterable<PoolMember<{ readonly registration: { readonly hardware: Hardware } }>>,
): Iterable<MeasuredRate> {
  for (const { subject, speed } of members) yield { speed, hardware: subject.registration.hardware };
}

function bandwidthOf({ bandwidth_gbs }: Hardware): number {
  return bandwidth_gbs === 0 ? DEFAULT_BANDWIDTH_GBS : bandwidth_gbs;
}
