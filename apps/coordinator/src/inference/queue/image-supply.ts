/**
 * Who can make the images of a request, and the wait for someone who can (spec: image rule). Nobody waits for what would not
 * come: a size that the model does not make, a model that writes text, or one that the image providers here do not have and none had lately.
 */
import { type ApiError, apiError, type ImageFacts, imageSizeOf } from '@inference/formats';
import { type ImageOffer, MAX_IMAGES } from '@inference/protocol';
import type { RecentlySeenModels } from '../../providers/placement/recently-seen-models.js';
import type { ServedModels } from '../../providers/placement/served-models.js';
import { makesImages } from '../request/image-job.js';
import { unknownModel } from '../request/unknown-model.js';

export interface ImageQuery {
  /** Null: any model. */
  readonly model: string | null;
  readonly image: ImageFacts;
  /** Whether the client's key is meant for a model. */
  readonly mayUse: (model: string) => boolean;
  readonly accountId: string;
}

export type ImageMatch =
  | { readonly kind: 'made'; readonly model: string; readonly pixels: string }
  /** Waiting would not help. */
  | { readonly kind: 'refused'; readonly error: ApiError; readonly reason: string }
  /** No provider of images is here that could be asked. */
  | { readonly kind: 'nobody' };

export type AwaitedMatch = Exclude<ImageMatch, { kind: 'nobody' }> | { readonly kind: 'gone' };

/** Requests that wait for somebody to come; each holds a connection and a small body. */
const MAX_WAITING = 1024;
const MAX_WAITING_PER_ACCOUNT = 128;
/** Sizes that a refusal lists. */
const MAX_LISTED = 32;

export class ImageSupply {
  readonly #models: ServedModels;
  readonly #expected: Pick<RecentlySeenModels, 'has'>;
  readonly #closing = new AbortController();
  #waiting = 0;
  readonly #waitingByAccount = new Map<string, number>();

  constructor(models: ServedModels, expected: Pick<RecentlySeenModels, 'has'>) {
    this.#models = models;
    this.#expected = expected;
  }

  /** Requests that wait for a provider of images. */
  get waiting(): number {
    return this.#waiting;
  }

  /** The model that would make the images now, and in which size. */
  match({ model, image, mayUse }: ImageQuery): ImageMatch {
    const offered = this.#models.imageOffers();
    if (model !== null) return this.#matchNamed(model, image, offered);
    const allowed = [...offered].filter(([id]) => mayUse(id));
    // The first by id among those that most machines have, so that equal requests get equal models.
    allowed.sort(([a, ofA], [b, ofB]) => ofB.length - ofA.length || (a < b ? -1 : 1));
    const matches = allowed.map(([id, offers]) => sizeAndCount(id, offers, image));
    return matches.find(({ kind }) => kind === 'made') ?? matches[0] ?? { kind: 'nobody' };
  }

  /** As {@link match}, and where nobody is here, what it is when somebody has come; an error after `waitMs` of nobody. */
  async wait(wish: ImageQuery, waitMs: number, signal: AbortSignal): Promise<AwaitedMatch> {
    const first = this.match(wish);
    if (first.kind !== 'nobody') return first;
    if (this.#closing.signal.aborted) return STOPPING;
    const own = this.#waitingByAccount.get(wish.accountId) ?? 0;
    if (this.#waiting >= MAX_WAITING || own >= MAX_WAITING_PER_ACCOUNT) {
      const error = apiError('rate_limit_exceeded', { message: 'Too many requests wait for a provider of images.' });
      return { kind: 'refused', error, reason: 'queue_full' };
    }
    this.#waiting++;
    this.#waitingByAccount.set(wish.accountId, own + 1);
    try {
      return await this.#whenSomebodyIsHere(wish, waitMs, signal);
    } finally {
      this.#waiting--;
      const left = (this.#waitingByAccount.get(wish.accountId) ?? 0) - 1;
      if (left > 0) this.#waitingByAccount.set(wish.accountId, left);
      else this.#waitingByAccount.delete(wish.accountId);
    }
  }

  /** Ends all waits, because the coordinator stops. */
  close(): void {
    this.#closing.abort();
  }

  #whenSomebodyIsHere(wish: ImageQuery, waitMs: number, signal: AbortSignal): Promise<AwaitedMatch> {
    return new Promise((resolve) => {
      const end = (match: AwaitedMatch): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', leave);
        this.#closing.signal.removeEventListener('abort', stop);
        stopListening();
        resolve(match);
      };
      const leave = (): void => end({ kind: 'gone' });
      const stop = (): void => end(STOPPING);
      const timer = setTimeout(
        () => end({ kind: 'refused', error: apiError('no_provider', { message: NOBODY, retryAfter: 30 }), reason: 'no_image_provider' }),
        Math.max(0, waitMs),
      );
      const stopListening = this.#models.onCapacity(() => {
        const match = this.match(wish);
        if (match.kind !== 'nobody') end(match);
      });
      signal.addEventListener('abort', leave);
      this.#closing.signal.addEventListener('abort', stop);
      if (signal.aborted) leave();
    });
  }

  #matchNamed(model: string, image: ImageFacts, offered: ReadonlyMap<string, readonly ImageOffer[]>): ImageMatch {
    const offers = offered.get(model);
    if (offers !== undefined) return sizeAndCount(model, offers, image);
    if (this.#models.serves(model) && !this.#models.isOfType(model, 'image')) {
      const error = apiError('invalid_request', { param: 'model', message: 'This model makes no images.' });
      return { kind: 'refused', error, reason: 'other_model_type' };
    }
    if (offered.size === 0 || this.#expected.has(model)) return { kind: 'nobody' };
    const listed = this.#models.listedNames().filter((name) => offered.has(name));
    return { kind: 'refused', error: unknownModel(model, listed), reason: 'model_not_found' };
  }
}

const STOPPING: AwaitedMatch = { kind: 'refused', error: apiError('shutting_down'), reason: 'shutting_down' };
const NOBODY = 'No provider of images came in time.';

function sizeAndCount(model: string, offers: readonly ImageOffer[], image: ImageFacts): ImageMatch {
  const pixels = commonSize(offers, image);
  if (pixels === null) {
    const sizes = [...new Set(offers.flatMap((offer) => offer.sizes))];
    const listed = sizes.slice(0, MAX_LISTED).join(', ') + (sizes.length > MAX_LISTED ? ', and others' : '');
    return refused('size', `size must be one of those that this model makes: ${listed}.`);
  }
  if (offers.some((offer) => makesImages(offer, image, pixels))) return { kind: 'made', model, pixels };
  const ofSize = offers.filter((offer) => makesImages(offer, { ...image, count: 1 }, pixels));
  const max = ofSize.reduce((highest, offer) => Math.max(highest, offer.max_images), 1);
  return refused('n', `n must be at most ${Math.min(max, MAX_IMAGES)} for this model and size.`);
}

/** The size that the request comes to on most machines; null where none makes it. */
function commonSize(offers: readonly ImageOffer[], { size }: ImageFacts): string | null {
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
