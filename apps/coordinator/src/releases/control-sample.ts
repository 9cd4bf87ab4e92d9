/** Samples controls for the comparison: machines without the version, similar to a machine that is offered it. Pure. */
import { rolloutPosition } from './offer-policy.js';
import { DEPARTURE_MS } from './rollout.js';

interface ControlCandidate {
  readonly providerId: string;
  readonly chipFamily: string;
  /** Whether the machine runs the version or was offered it. */
  readonly isUpdated: boolean;
  /** When the machine was last sampled as a control; null: never. */
  readonly sampledAt: number | null;
}

/** More than one, because only few machines update in the first stage. */
const CONTROLS_PER_OFFER = 3;

/** Picks machines of the same chip family. Both sides are observed from the same moment, so time of day and load affect both. */
export function pickControls<Candidate extends ControlCandidate>(
  offered: { readonly providerId: string; readonly chipFamily: string; readonly version: string },
  candidates: Iterable<Candidate>,
  now: number,
): Candidate[] {
  const ranked: { readonly rank: number; readonly candidate: Candidate }[] = [];
  for (const candidate of candidates) {
    const { providerId, chipFamily, isUpdated, sampledAt } = candidate;
    if (isUpdated || chipFamily !== offered.chipFamily || providerId === offered.providerId) continue;
    if (sampledAt !== null && now - sampledAt < DEPARTURE_MS) continue;
    ranked.push({ rank: rolloutPosition(providerId, `${offered.version} ${offered.providerId}`), candidate });
  }
  return ranked
    .sort((a, b) => a.rank - b.rank)
    .slice(0, CONTROLS_PER_OFFER)
    .map(({ candidate }) => candidate);
}
