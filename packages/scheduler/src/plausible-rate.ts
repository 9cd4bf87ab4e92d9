/**
 * Whether a machine can have decoded as fast as it says, by what was measured of all machines of the model. Pure. The factor is generous:
 * machines differ, and a measured rate may be that of a bad moment.
 */
import type { Hardware } from '@inference/protocol';
import type { ThroughputEstimate } from './job-cost.js';
import type { PoolMember } from './provider-pool.js';
import { estimateFromHardware } from './throughput-stats.js';

export interface MeasuredRate {
  readonly speed: ThroughputEstimate;
  readonly hardware: Hardware;
}

/** Times a measured rate that another machine of the same memory bandwidth may be as fast. */
const MAX_RATE_FACTOR = 16;
/** Answers after which a rate is a reference for others. */
export const MIN_RATE_SAMPLES = 16;
/** Rates up to this are possible on any machine, in tokens per second. */
export const ALWAYS_PLAUSIBLE_TPS = 256;
/** Memory bandwidth of a machine that does not tell it, in GB/s. */
const DEFAULT_BANDWIDTH_GBS = 100;

/**
 * `own`: what was measured of the machine itself. Until that is a reference, a rate is possible that small models reach on such hardware:
 * the only other machines may be slow on purpose.
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
