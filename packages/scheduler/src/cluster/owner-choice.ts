/**
 * `chooseOwner` chooses which coordinator of a cluster to ask for a slot (room for one job) on one of its providers.
 *
 * A provider's owner is the coordinator that it is connected to. The choice compares digests, summaries of the owners' free slots. They may
 * be out of date, so the asked owner may still decline.
 */
import type { TrustLevel } from '@inference/protocol';
import type { Work } from '../cost/job-cost.js';
import { comparedWork, nearTieMs } from '../placement/group-ranking.js';
import { type SortCriterion, withCachedPrefix } from '../placement/schedule.js';
import { DEFAULT_CONSTANTS, type SchedulerConstants } from '../scheduler-constants.js';
import { classCostMs, type ModelDigest, type ThroughputClass } from './model-digest.js';
import type { OwnerId, OwnerState } from './owner-digests.js';

export interface OwnerRequest {
  readonly work: Work;
  /** Required context length, input and output, in tokens; 0: unknown. */
  readonly contextTokens: number;
  /** As `<width>x<height>`; null: no image. */
  readonly imageSize: string | null;
  /** Minimum trust level. Null: any. */
  readonly trustFloor: TrustLevel | null;
  /** Owners that already declined a slot. The request may still queue there. */
  readonly excludedOwners: ReadonlySet<OwnerId>;
  /** Number of providers that failed this job, by owner. */
  readonly excludedProviders: ReadonlyMap<OwnerId, number>;
  /** Sort criterion of the client's routing preferences. Absent or null: estimated completion time. */
  readonly sort?: SortCriterion | null;
  /** Owner of a provider that probably has a cached prefix of the prompt. */
  readonly prefix: OwnerPrefix | null;
}

export interface OwnerPrefix {
  readonly owner: OwnerId;
  /** Expected cached tokens. */
  readonly tokens: number;
}

export type OwnerChoice =
  | {
      readonly kind: 'ask';
      readonly owner: OwnerId;
      /** Index of the throughput class, in the owner's digest, that should provide the slot. */
      readonly classIndex: number;
      /** The owner must not load the model for this request. */
      readonly loadedOnly: boolean;
      /** Estimated queue wait across all owners, in milliseconds; null: unknown. */
      readonly expectedWaitMs: number | null;
      /**
       * `prefix`: a provider of the owner has the cached prefix. `local`: this coordinator, at nearly the best cost. `near_tie`: drawn
       * among owners of nearly equal cost, none of them local.
       */
      readonly why: 'prefix' | 'local' | 'cheapest' | 'near_tie';
    }
  /** No owner has a free slot. `owners`: peers to queue at, in addition to the local queue. */
  | { readonly kind: 'queue'; readonly owners: readonly OwnerId[]; readonly expectedWaitMs: number | null }
  /** Waiting would not help. */
  | { readonly kind: 'none'; readonly reason: NoOwnerReason };

export type NoOwnerReason = 'none_routable' | 'context_too_long' | 'no_such_image_size' | 'below_trust_floor' | 'all_failed';

/** Time without a message after which a peer is considered dead, in milliseconds. */
export const PEER_SILENCE_MS = 3000;
/** Peers that a request queues at, in addition to the local queue. */
export const MAX_QUEUE_OWNERS = 2;

/** `digests`: digests of one model, including the digest of `self`. `now` in milliseconds; `random` returns numbers in [0, 1). */
export function chooseOwner(
  digests: ReadonlyMap<OwnerId, OwnerState>,
  request: OwnerRequest,
  self: OwnerId,
  now: number,
  random: () => number,
  constants: SchedulerConstants = DEFAULT_CONSTANTS,
): OwnerChoice {
  const serving: ServingOwner[] = [];
  let noneReason: NoOwnerReason = 'none_routable';
  for (const [owner, state] of digests) {
    if (owner !== self && now - state.heardAt > PEER_SILENCE_MS) continue;
    const reason = unsuitableReason(owner, state.digest, request);
    if (reason === null) serving.push({ owner, state });
    else if (noneReason === 'none_routable') noneReason = reason;
  }
  if (serving.length === 0) return { kind: 'none', reason: noneReason };
  const expectedWaitMs = expectedWait(serving);
  const candidates = candidatesOf(serving, request, expectedWaitMs, constants);
  let bestMs = Number.POSITIVE_INFINITY;
  for (const { costMs } of candidates) bestMs = Math.min(bestMs, costMs);
  if (candidates.length === 0) return { kind: 'queue', owners: queueOwners(serving, request, self, random), expectedWaitMs };
  const limitMs = (request.sort ?? null) === null ? nearTieMs(bestMs, constants) : bestMs;
  const ask = ({ owner, classIndex, throughput }: Candidate, why: (OwnerChoice & { kind: 'ask' })['why']): OwnerChoice => ({
    kind: 'ask',
    owner,
    classIndex,
    loadedOnly: !throughput.isCold,
    expectedWaitMs,
    why,
  });
  const warm = warmCandidate(candidates, request, limitMs, constants);
  if (warm !== null) return ask(warm, 'prefix');
  const near = candidates.filter(({ costMs }) => costMs <= limitMs);
  const local = near.find(({ owner }) => owner === self);
  if (local !== undefined) return ask(local, 'local');
  const drawn = near[drawIndex(near, ({ freeSlots }) => freeSlots, random)] as Candidate;
  return ask(drawn, near.length === 1 ? 'cheapest' : 'near_tie');
}

interface ServingOwner {
  readonly owner: OwnerId;
  readonly state: OwnerState;
}

interface Candidate {
  readonly owner: OwnerId;
  readonly classIndex: number;
  readonly throughput: ThroughputClass;
  /** Free slots of the class, less the slots requested since the digest. */
  readonly freeSlots: number;
  readonly costMs: number;
}

/** Reason why the owner cannot serve the request even after a wait, or null. */
function unsuitableReason(owner: OwnerId, digest: ModelDigest, request: OwnerRequest): NoOwnerReason | null {
  if (digest.serving === 0) return 'none_routable';
  if ((digest.maxContextTokens ?? 0) < request.contextTokens) return 'context_too_long';
  if (request.imageSize !== null && !digest.imageSizes.includes(request.imageSize)) return 'no_such_image_size';
  if (request.trustFloor === 'hardware' && digest.trustedSlots === 0 && digest.classes.every((one) => one.trustedFreeSlots === 0))
    return 'below_trust_floor';
  return (request.excludedProviders.get(owner) ?? 0) >= digest.serving ? 'all_failed' : null;
}

/** Throughput classes with a free slot for the request. */
function candidatesOf(
  serving: readonly ServingOwner[],
  request: OwnerRequest,
  expectedWaitMs: number | null,
  constants: SchedulerConstants,
): Candidate[] {
  const hasLoaded = serving.some(({ state }) => state.digest.totalSlots > 0);
  const candidates: Candidate[] = [];
  for (const { owner, state } of serving) {
    if (request.excludedOwners.has(owner)) continue;
    const { digest, taken } = state;
    for (const [classIndex, throughput] of digest.classes.entries()) {
      const free = request.trustFloor === 'hardware' ? throughput.trustedFreeSlots : throughput.freeSlots;
      const freeSlots = free - (taken[classIndex] ?? 0);
      if (freeSlots <= 0) continue;
      if (throughput.isCold && hasLoaded && !mayLoad(digest, throughput, expectedWaitMs, constants)) continue;
      candidates.push({ owner, classIndex, throughput, freeSlots, costMs: classCostMs(throughput, comparedWork(request)) });
    }
  }
  return candidates;
}

/** Whether the request may make a provider load the model. Same rule as `mayLoad` in `schedule.ts`. */
function mayLoad(
  { serving, cold, loading }: ModelDigest,
  { waitMs }: ThroughputClass,
  expectedWaitMs: number | null,
  { maxLoads, maxLoadsShare }: SchedulerConstants,
): boolean {
  if (loading >= Math.max(maxLoads, maxLoadsShare * (serving - cold - loading))) return false;
  return (expectedWaitMs ?? Number.POSITIVE_INFINITY) >= waitMs;
}

/** The cheapest loaded class of the owner with the cached prefix; null if its cost exceeds `limitMs` even with the prefix. */
function warmCandidate(
  candidates: readonly Candidate[],
  request: OwnerRequest,
  limitMs: number,
  { affinityWeight }: SchedulerConstants,
): Candidate | null {
  const { prefix } = request;
  if (prefix === null) return null;
  const reduced = withCachedPrefix(comparedWork(request), affinityWeight * prefix.tokens);
  let warm: Candidate | null = null;
  let warmMs = limitMs;
  for (const candidate of candidates) {
    if (candidate.owner !== prefix.owner || candidate.throughput.isCold) continue;
    const costMs = classCostMs(candidate.throughput, reduced);
    if (costMs > warmMs) continue;
    warm = candidate;
    warmMs = costMs;
  }
  return warm;
}

/** Draws peers at random, weighted by slots, so that queued requests of all coordinators spread evenly. */
function queueOwners(serving: readonly ServingOwner[], { trustFloor }: OwnerRequest, self: OwnerId, random: () => number): OwnerId[] {
  const slotsOf = ({ state }: ServingOwner): number => (trustFloor === 'hardware' ? state.digest.trustedSlots : state.digest.totalSlots);
  const peers = serving.filter(({ owner }) => owner !== self);
  const drawn: OwnerId[] = [];
  while (drawn.length < MAX_QUEUE_OWNERS && peers.length > 0) {
    const [peer] = peers.splice(drawIndex(peers, slotsOf, random), 1);
    if (peer !== undefined) drawn.push(peer.owner);
  }
  return drawn;
}

/** Index of a random item, weighted by `weightOf`; the last index if all weights are 0. */
function drawIndex<T>(items: readonly T[], weightOf: (item: T) => number, random: () => number): number {
  let total = 0;
  for (const item of items) total += weightOf(item);
  let left = random() * total;
  for (const [index, item] of items.entries()) {
    left -= weightOf(item);
    if (left < 0) return index;
  }
  return items.length - 1;
}

/** Estimated queue wait of a new request across all owners, in milliseconds; null: unknown. */
function expectedWait(serving: readonly ServingOwner[]): number | null {
  let [waiting, slots, weightedMs, measuredSlots] = [0, 0, 0, 0];
  for (const { state } of serving) {
    const { queueLength, totalSlots, meanServiceMs } = state.digest;
    waiting += queueLength;
    slots += totalSlots;
    if (meanServiceMs === null) continue;
    weightedMs += meanServiceMs * totalSlots;
    measuredSlots += totalSlots;
  }
  return measuredSlots === 0 ? null : ((weightedMs / measuredSlots) * (waiting + 1)) / slots;
}
