/**
 * `ImageSupply` matches image requests with a model and size that connected providers offer. A request for which none is connected waits.
 *
 * A matched request then waits for a slot in the `RequestQueue`.
 */
import { type ApiError, apiError, type ImageRequestParams, imageSizeOf } from '@inference/formats';
import { type ImageOffer, MAX_IMAGES } from '@inference/protocol';
import type { RecentlySeenModels } from '../../providers/placement/recently-seen-models.js';
import type { NetworkModels } from '../placements.js';
import { makesImages } from '../request/image-job.js';
import { unknownModel } from '../request/unknown-model.js';

interface ImageQuery {
  /** Null for any model. */
  readonly model: string | null;
  readonly image: ImageRequestParams;
  /** Whether the client's API key permits a model. */
  readonly mayUse: (model: string) => boolean;
  readonly accountId: string;
}

type ImageMatch =
  | { readonly kind: 'matched'; readonly model: string; readonly pixels: string }
  /** The request cannot be served, and waiting would not change that. */
  | { readonly kind: 'refused'; readonly error: ApiError; readonly reason: string }
  /** No suitable image provider is connected now. */
  | { readonly kind: 'none' };

type AwaitedMatch = Exclude<ImageMatch, { kind: 'none' }> | { readonly kind: 'disconnected' };

/** Maximum waiting requests. Each one holds a connection and a small body. */
const MAX_WAITING = 1024;
const MAX_WAITING_PER_ACCOUNT = 128;
/** Maximum sizes listed in an error message. */
const MAX_LISTED = 32;

export class ImageSupply {
  readonly #models: NetworkModels;
  readonly #recentlySeenModels: Pick<RecentlySeenModels, 'has'>;
  readonly #closing = new AbortController();
  #waiting = 0;
  readonly #waitingByAccount = new Map<string, number>();

  constructor(models: NetworkModels, recentlySeenModels: Pick<RecentlySeenModels, 'has'>) {
    this.#models = models;
    this.#recentlySeenModels = recentlySeenModels;
  }

  /** Number of waiting requests. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Model and size that the request would get now. */
  match({ model, image, mayUse }: ImageQuery): ImageMatch {
    const offered = this.#models.imageOffers();
    if (model !== null) return this.#matchNamed(model, image, offered);
    const allowed = [...offered].filter(([id]) => mayUse(id));
    // Models with the most providers come first, then the order of ids decides, so that equal requests get the same model.
    allowed.sort(([a, ofA], [b, ofB]) => ofB.length - ofA.length || (a < b ? -1 : 1));
    const matches = allowed.map(([id, offers]) => sizeAndCount(id, offers, image));
    return matches.find(({ kind }) => kind === 'matched') ?? matches[0] ?? { kind: 'none' };
  }

  /** Like {@link match}, but waits up to `waitMs` for an image provider, and then refuses. `signal` aborts when the client disconnects. */
  async wait(query: ImageQuery, waitMs: number, signal: AbortSignal): Promise<AwaitedMatch> {
    const first = this.match(query);
    if (first.kind !== 'none') return first;
    if (this.#closing.signal.aborted) return STOPPING;
    const own = this.#waitingByAccount.get(query.accountId) ?? 0;
    if (this.#waiting >= MAX_WAITING || own >= MAX_WAITING_PER_ACCOUNT) {
      const error = apiError('rate_limit_exceeded', { message: 'Too many requests are waiting for an image provider.' });
      return { kind: 'refused', error, reason: 'queue_full' };
    }
    this.#waiting++;
    this.#waitingByAccount.set(query.accountId, own + 1);
    try {
      return await this.#waitForProvider(query, waitMs, signal);
    } finally {
      this.#waiting--;
      const left = (this.#waitingByAccount.get(query.accountId) ?? 0) - 1;
      if (left > 0) this.#waitingByAccount.set(query.accountId, left);
      else this.#waitingByAccount.delete(query.accountId);
    }
  }

  /** Reads again which other coordinators serve the model, after a placement found no provider. */
  async refresh(model: string): Promise<void> {
    await this.#models.refresh?.(model);
  }

  /** Ends all waits, because the coordinator stops. */
  close(): void {
    this.#closing.abort();
  }

  #waitForProvider(query: ImageQuery, waitMs: number, signal: AbortSignal): Promise<AwaitedMatch> {
    return new Promise((resolve) => {
      const end = (match: AwaitedMatch): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', onAbort);
        this.#closing.signal.removeEventListener('abort', onClose);
        stopListening();
        resolve(match);
      };
      const onAbort = (): void => end({ kind: 'disconnected' });
      const onClose = (): void => end(STOPPING);
      const timer = setTimeout(
        () =>
          end({
            kind: 'refused',
            error: apiError('no_provider', { message: NO_PROVIDER_MESSAGE, retryAfter: 30 }),
            reason: 'no_image_provider',
          }),
        Math.max(0, waitMs),
      );
      const stopListening = this.#models.onCapacity(() => {
        const match = this.match(query);
        if (match.kind !== 'none') end(match);
      });
      signal.addEventListener('abort', onAbort);
      this.#closing.signal.addEventListener('abort', onClose);
      if (signal.aborted) onAbort();
    });
  }

  #matchNamed(model: string, image: ImageRequestParams, offered: ReadonlyMap<string, readonly ImageOffer[]>): ImageMatch {
    const offers = offered.get(model);
    if (offers !== undefined) return sizeAndCount(model, offers, image);
    if (this.#models.serves(model) && !this.#models.isOfType(model, 'image')) {
      const error = apiError('invalid_request', { param: 'model', message: 'This model makes no images.' });
      return { kind: 'refused', error, reason: 'other_model_type' };
    }
    if (offered.size === 0 || this.#recentlySeenModels.has(model)) return { kind: 'none' };
    const listed = this.#models.listedNames().filter((name) => offered.has(name));
    return { kind: 'refused', error: unknownModel(model, listed), reason: 'model_not_found' };
  }
}

const STOPPING: AwaitedMatch = { kind: 'refused', error: apiError('shutting_down'), reason: 'shutting_down' };
const NO_PROVIDER_MESSAGE = 'No image provider connected in time.';

function sizeAndCount(model: string, offers: readonly ImageOffer[], image: ImageRequestParams): ImageMatch {
  const pixels = commonSize(offers, image);
  if (pixels === null) {
    const sizes = [...new Set(offers.flatMap((offer) => offer.sizes))];
    const listed = sizes.slice(0, MAX_LISTED).join(', ') + (sizes.length > MAX_LISTED ? ', and others' : '');
    return refused('size', `size must be one of those that this model makes: ${listed}.`);
  }
  if (offers.some((offer) => makesImages(offer, image, pixels))) return { kind: 'matched', model, pixels };
  const ofSize = offers.filter((offer) => makesImages(offer, { ...image, count: 1 }, pixels));
  const max = ofSize.reduce((highest, offer) => Math.max(highest, offer.max_images), 1);
  return refused('n', `n must be at most ${Math.min(max, MAX_IMAGES)} for this model and size.`);
}

/** Size that the most providers would make for the request. Null if none makes an acceptable size. */
function commonSize(offers: readonly ImageOffer[], { size }: ImageRequestParams): string | null {
  const counts = new Map<string, number>();
  for (const { sizes } of offers) {
    const pixels = imageSizeOf(size, sizes);
    if (pixels !== null) counts.set(pixels, (counts.get(pixels) ?? 0) + 1);
  }
  let common: string | null = null;
  for (const [pixels, count] of counts) {
    if (common === null || count > (counts.get(common) ?? 0)) common = pixels;
  }
  return common;
}

function refused(param: string, message: string): ImageMatch {
  return { kind: 'refused', error: apiError('invalid_request', { param, message }), reason: 'invalid_request' };
}
