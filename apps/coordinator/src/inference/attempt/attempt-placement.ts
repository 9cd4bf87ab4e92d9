/** `AttemptPlacement` finds a slot for each attempt of a job, by the client's routing preferences and within the job's waits. */
import { apiError } from '@inference/formats';
import type { PlacementService } from '../../providers/placement/placement-service.js';
import type { JobObserver } from '../job-observer.js';
import { type JobTimings, MAX_ATTEMPTS } from '../job-timings.js';
import type { Placements } from '../placements.js';
import type { ImageSupply } from '../queue/image-supply.js';
import type { NotPlacedReason, Placement, SlotRequest } from '../queue/request-queue.js';
import { makesImages } from '../request/image-job.js';
import type { JobRequest } from '../request/job-request.js';
import { type JobRouting, namedWithoutVision, nothingMatches } from '../request/job-routing.js';
import { attemptSummary, providerIdOf, type RunningJob } from '../running-job.js';
import { failed, type JobOutcome, notPlaced } from '../settlement/job-outcome.js';
import { PROVIDER_LEFT_REASONS } from '../settlement/outcome-policy.js';

export interface AttemptPlacementOptions {
  /** Providers connected to this process. */
  readonly registry: { readonly placement: Pick<PlacementService, 'unfitForImages'> };
  readonly placements: Placements;
  readonly imageSupply: ImageSupply;
  readonly timings: JobTimings;
  /** Milliseconds. */
  readonly now: () => number;
  readonly observer: JobObserver;
}

/** Maximum wait for a second provider after a proven one has refused, in milliseconds. */
const CONFIRMATION_WAIT_MS = 2000;

export class AttemptPlacement {
  readonly #options: AttemptPlacementOptions;

  constructor(options: AttemptPlacementOptions) {
    this.#options = options;
  }

  /** Waits for a slot. `isConfirmation`: to confirm a refusal, with a short wait and without a model load. */
  async place(running: RunningJob, isConfirmation: boolean): Promise<Placement> {
    const { placements, timings, now, observer } = this.#options;
    const { job, slotRequest, deadline, clientSignal, span, attemptCount } = running;
    const imageWaitMs = job.images === null ? 0 : job.images.waitUntil - now();
    const queueMs = running.maxQueueMs ?? Math.max(timings.queueMs, imageWaitMs);
    const waitMs = Math.min(isConfirmation ? CONFIRMATION_WAIT_MS : queueMs, deadline - now());
    const startedAt = performance.now();
    this.#excludeUnfit(running);
    const placing = span.child('inference.placement');
    const request = attemptCount === 0 ? slotRequest : { ...slotRequest, retried: true, loadedOnly: isConfirmation };
    const placement = await placeByPreference(placements, request, { routing: running.routing, waitMs, signal: clientSignal });
    const outcome = placement.kind === 'placed' ? placement.why : placement.reason;
    placing.end({ 'inference.outcome': outcome }, placement.kind === 'refused' ? outcome : null);
    observer.event({ type: 'placed', outcome, waitMs: performance.now() - startedAt });
    return placement;
  }

  /** Waits for an image provider after the last one left (spec: image rule). `none`: not in time; null: no wait. */
  async waitForImages(running: RunningJob, last: JobOutcome | null, reason: NotPlacedReason): Promise<'retry' | 'none' | null> {
    const { imageSupply, now } = this.#options;
    const { job, slotRequest, deadline, clientSignal, attemptCount } = running;
    const { images, params } = job;
    if (images === null || attemptCount >= MAX_ATTEMPTS || running.imageWaitAttempt === attemptCount) return null;
    if (reason !== 'none_routable' && reason !== 'all_failed') return null;
    const hasProviderLeft = last === null || (last.kind === 'failed' && PROVIDER_LEFT_REASONS.has(last.reason));
    if (!hasProviderLeft) return null;
    running.imageWaitAttempt = attemptCount;
    await imageSupply.refresh(params.model);
    const waitMs = Math.min(images.waitUntil, deadline) - now();
    const query = { model: params.model, image: images, accountId: job.accountId, mayUse: () => true };
    const match = await imageSupply.wait(query, waitMs, clientSignal);
    // The provider that left may have reconnected.
    if (last !== null && last.provider !== null) slotRequest.exclude.delete(providerIdOf(last.provider));
    if (clientSignal.aborted || match.kind === 'disconnected') return null;
    return match.kind === 'matched' && match.pixels === images.pixels ? 'retry' : 'none';
  }

  /** Excludes providers that offer the image model in other sizes only. */
  #excludeUnfit({ job: { images, params }, slotRequest }: RunningJob): void {
    if (images === null) return;
    const fits = (offer: Parameters<typeof makesImages>[0]): boolean => makesImages(offer, images, images.pixels);
    for (const providerId of this.#options.registry.placement.unfitForImages(params.model, fits)) slotRequest.exclude.add(providerId);
  }
}

/** Reasons for which waiting would not help. */
const NOT_SERVING: ReadonlySet<NotPlacedReason> = new Set(['no_such_serial', 'no_vision', 'none_routable', 'below_trust_floor']);

/** Places by `order`, then on any other provider. Without fallbacks: on the first of `order` that serves the request. */
async function placeByPreference(
  placements: Placements,
  request: SlotRequest,
  { routing, waitMs, signal }: { readonly routing: JobRouting | null; readonly waitMs: number; readonly signal: AbortSignal },
): Promise<Placement> {
  if (routing === null || routing.preferences.order.length === 0) return placements.place(request, waitMs, signal);
  const { allowsFallbacks } = routing.preferences;
  const waitsUntil = performance.now() + waitMs;
  let lackVision = 0;
  for (const providerId of routing.order) {
    const first = { ...request, candidates: new Set([providerId]) };
    const placement = await placements.place(first, allowsFallbacks ? 0 : waitMs, signal);
    if (placement.kind === 'placed' || placement.reason === 'aborted') return placement;
    if (!allowsFallbacks && !NOT_SERVING.has(placement.reason)) return placement;
    if (placement.reason === 'no_vision') lackVision++;
  }
  if (!allowsFallbacks) {
    const reason = lackVision > 0 && lackVision === routing.order.length ? 'no_vision' : 'no_such_serial';
    return { kind: 'refused', reason, retryAfterMs: null };
  }
  return placements.place(request, waitMs === 0 ? 0 : Math.max(1, waitsUntil - performance.now()), signal);
}

/** Outcome of an image job that waited for a provider in vain. */
export function noImageProvider(running: RunningJob, last: JobOutcome | null): JobOutcome {
  return failed(attemptSummary(last?.provider ?? null, running), apiError('no_provider'), 'no_image_provider');
}

/** Outcome of a job that got no slot. `last`: outcome of its last attempt. */
export function outcomeWithoutSlot(placement: Placement & { kind: 'refused' }, running: RunningJob, last: JobOutcome | null): JobOutcome {
  const { job, routing, clientSignal } = running;
  return notPlaced(placement, {
    isClientDisconnected: clientSignal.aborted,
    trustFloor: job.trustFloor,
    trustParam: job.trustParam,
    namedBy: namedBy(job),
    nothingMatches: () => nothingMatches(job.params, { routing, images: job.inputImages }),
    lacksVision: () => namedWithoutVision(job),
    summary: attemptSummary(last?.provider ?? null, running),
    last,
  });
}

function namedBy({ sealed, providerId, params }: JobRequest): 'candidates' | 'id' | 'serial' | 'preferences' {
  if (sealed !== null) return 'candidates';
  if (providerId !== null) return 'id';
  return params.providerSerial === null ? 'preferences' : 'serial';
}
