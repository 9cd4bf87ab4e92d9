/**
 * `AttemptPlacement` finds a provider slot for each attempt of a job and applies the client's routing preferences.
 *
 * Used by `AttemptRunner`. Also decides how long a job waits for a slot.
 */
import type { PlacementService } from '../../providers/placement/placement-service.js';
import type { JobObserver } from '../job-observer.js';
import { type JobTimings, MAX_ATTEMPTS } from '../job-timings.js';
import { type ModelRun, providerIdOf } from '../model-run.js';
import type { Placements } from '../placements.js';
import type { ImageSupply } from '../queue/image-supply.js';
import type { NotPlacedReason, Placed, Placement, SlotRequest } from '../queue/request-queue.js';
import { mayGenerateImages, requestedImages } from '../request/job-request.js';
import type { JobRouting } from '../request/job-routing.js';
import type { JobOutcome } from '../settlement/job-outcome.js';
import type { NotPlaced } from '../settlement/not-placed.js';
import { PROVIDER_LEFT_REASONS } from '../settlement/outcome-policy.js';

export interface AttemptPlacementOptions {
  /** Providers connected to this process. */
  readonly registry: { readonly placement: Pick<PlacementService, 'unfitForImages'> };
  readonly placements: Placements;
  readonly imageSupply: ImageSupply;
  readonly timings: JobTimings;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly observer: JobObserver;
}

/** Maximum wait for the slot of a second provider that confirms a refusal, in milliseconds. */
const CONFIRMATION_WAIT_MS = 2000;
/** Maximum time to find out that no candidate reads images, in milliseconds. A coordinator that does not answer delays each check. */
const VISION_CHECK_MS = 2000;

export class AttemptPlacement {
  readonly #options: AttemptPlacementOptions;

  constructor(options: AttemptPlacementOptions) {
    this.#options = options;
  }

  /**
   * Waits for a slot. If the attempt is only to confirm a provider's refusal, the wait is short and no provider loads the model.
   */
  async place(run: ModelRun, isConfirmation: boolean): Promise<Placed | NotPlaced> {
    const { placements, timings, now, observer } = this.#options;
    const { job, slotRequest, deadline, clientSignal, span, attemptCount } = run;
    const imageWaitMs = job.images === null ? 0 : job.images.waitUntil - now();
    const queueMs = run.maxQueueMs ?? Math.max(timings.queueMs, imageWaitMs);
    const waitMs = Math.min(isConfirmation ? CONFIRMATION_WAIT_MS : queueMs, deadline - now());
    const startedAt = performance.now();
    this.#excludeUnfit(run);
    const placing = span.child('inference.placement');
    const request = attemptCount === 0 ? slotRequest : { ...slotRequest, retried: true, loadedOnly: isConfirmation };
    const placement = await placeByPreference(placements, request, { routing: run.routing, waitMs, signal: clientSignal });
    const outcome = placement.kind === 'placed' ? placement.why : placement.reason;
    placing.end({ 'inference.outcome': outcome }, placement.kind === 'refused' ? outcome : null);
    observer.event({ type: 'placed', outcome, waitMs: performance.now() - startedAt });
    return placement.kind === 'refused' && isForUnfitImages(placement.reason, run) ? NONE_FITS : placement;
  }

  /**
   * Waits for an image provider to connect, after the last suitable one has left. Waits at most once between two attempts.
   *
   * After `retry`, the job must be placed again. `none` means that the wait ended without a provider for the job's image size. Null means
   * that no wait applies, or that the client disconnected.
   */
  async waitForImages(run: ModelRun, last: JobOutcome | null, reason: NotPlaced['reason']): Promise<'retry' | 'none' | null> {
    const { imageSupply, now } = this.#options;
    const { job, slotRequest, deadline, clientSignal, attemptCount } = run;
    const { images, params } = job;
    if (images === null || attemptCount >= MAX_ATTEMPTS || run.attemptCountAtImageWait === attemptCount) return null;
    if (reason !== 'none_routable' && reason !== 'all_failed') return null;
    const hasProviderLeft = last === null || (last.kind === 'failed' && PROVIDER_LEFT_REASONS.has(last.reason));
    if (!hasProviderLeft) return null;
    run.attemptCountAtImageWait = attemptCount;
    await imageSupply.refresh(params.model);
    const waitMs = Math.min(images.waitUntil, deadline) - now();
    const query = { model: params.model, image: images, accountId: job.accountId, mayUse: () => true };
    const match = await imageSupply.wait(query, waitMs, clientSignal);
    // The provider that left may have reconnected.
    if (last !== null && last.provider !== null) slotRequest.exclude.delete(providerIdOf(last.provider));
    if (clientSignal.aborted || match.kind === 'disconnected') return null;
    return match.kind === 'matched' && match.pixels === images.pixels ? 'retry' : 'none';
  }

  /** Excludes providers whose image offer rules the job out; see {@link mayGenerateImages}. */
  #excludeUnfit({ job, slotRequest, unfitProviders }: ModelRun): void {
    if (requestedImages(job) === 0) return;
    const unfit = this.#options.registry.placement.unfitForImages(job.params.model, (offer) => mayGenerateImages(job, offer));
    for (const providerId of unfit) {
      slotRequest.exclude.add(providerId);
      unfitProviders.add(providerId);
    }
  }
}

const NONE_FITS: NotPlaced = { kind: 'refused', reason: 'unfit_for_images', retryAfterMs: null };

/** Whether the queue refused a sealed job only because its candidates were excluded for their image offers. */
function isForUnfitImages(reason: NotPlacedReason, { job, slotRequest, unfitProviders }: ModelRun): boolean {
  if (reason !== 'all_failed' || job.sealed === null || requestedImages(job) === 0) return false;
  return [...slotRequest.exclude].every((providerId) => unfitProviders.has(providerId));
}

/** Refusal reasons that mean that the provider cannot serve the request at all. The others mean that it is busy or has failed. */
const NOT_SERVING: ReadonlySet<NotPlacedReason> = new Set(['no_such_serial', 'no_vision', 'none_routable', 'below_trust_floor']);

/**
 * Tries the providers of `provider.order` without waiting, then waits for any provider.
 *
 * If `allow_fallbacks` is false, waits for the first provider of `order` that serves the request, and tries no other.
 */
async function placeByPreference(
  placements: Placements,
  request: SlotRequest,
  { routing, waitMs, signal }: { readonly routing: JobRouting | null; readonly waitMs: number; readonly signal: AbortSignal },
): Promise<Placement> {
  if (routing === null || routing.preferences.order.length === 0) return placeOnAny(placements, request, waitMs, signal);
  const { allowsFallbacks } = routing.preferences;
  const waitEndsAt = performance.now() + waitMs;
  let withoutVisionCount = 0;
  for (const providerId of routing.order) {
    const onProvider = { ...request, candidates: new Set([providerId]) };
    const placement = await placements.place(onProvider, allowsFallbacks ? 0 : waitMs, signal);
    if (placement.kind === 'placed' || placement.reason === 'aborted') return placement;
    if (!allowsFallbacks && !NOT_SERVING.has(placement.reason)) return placement;
    if (placement.reason === 'no_vision') withoutVisionCount++;
  }
  if (!allowsFallbacks) {
    const lacksVision = withoutVisionCount > 0 && withoutVisionCount === routing.order.length;
    const reason = lacksVision ? 'no_vision' : 'no_such_serial';
    return { kind: 'refused', reason, retryAfterMs: null };
  }
  // At least 1 ms is left, because a wait of 0 would not queue the request.
  const restMs = waitMs === 0 ? 0 : Math.max(1, waitEndsAt - performance.now());
  return placeOnAny(placements, request, restMs, signal);
}

/**
 * Places on any provider that the request permits.
 *
 * Each coordinator of a cluster sees only its own providers, so none alone can tell whether any candidate reads images. Candidates are
 * therefore tried one by one, for at most {@link VISION_CHECK_MS}.
 */
async function placeOnAny(placements: Placements, request: SlotRequest, waitMs: number, signal: AbortSignal): Promise<Placement> {
  const placement = await placements.place(request, waitMs, signal);
  const { candidates = null, filter = null } = request;
  if (placement.kind === 'placed' || placement.reason !== 'no_such_serial') return placement;
  if (candidates === null || filter === null || filter.images === 0) return placement;
  const considered = [...candidates].filter((providerId) => !filter.ignoredIds.has(providerId));
  if (considered.length < 2) return placement;
  const checkSignal = AbortSignal.any([signal, AbortSignal.timeout(VISION_CHECK_MS)]);
  for (const providerId of considered) {
    const alone = await placements.place({ ...request, candidates: new Set([providerId]) }, 0, checkSignal);
    if (alone.kind === 'placed' || signal.aborted) return alone;
    if (alone.reason !== 'no_vision') return placement;
  }
  return { ...placement, reason: 'no_vision' };
}
