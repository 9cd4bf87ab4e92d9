/** `publishedModels`: models of this coordinator's providers with their digests (slots, queue, throughput), for heartbeats. */
import type { ImageOffer } from '@inference/protocol';
import { digestOf } from '@inference/scheduler';
import type { RequestQueue } from '../../inference/queue/request-queue.js';
import type { ProviderRegistry } from '../../providers/provider-registry.js';
import type { PublishedModel } from '../membership/heartbeat.js';

/** A model with its digest; null: no local provider serves the model. */
export function publishedModel(id: string, registry: ProviderRegistry, requestQueue: RequestQueue): PublishedModel | null {
  const pool = registry.models.poolNow(id);
  if (pool === null || pool.serving === 0) return null;
  const type = typeOf(id, registry);
  const images = type === 'image' ? distinctOffers(registry.models.imageOffersOf(id)) : [];
  const digest = digestOf(pool, {
    queueLength: requestQueue.outlook(id).waiting,
    meanServiceMs: requestQueue.meanServiceMs(id),
    imageSizes: [...new Set(images.flatMap(({ sizes }) => sizes))],
  });
  return { id, type, images, vision: registry.models.vision(id), digest };
}

function typeOf(id: string, { models }: ProviderRegistry): PublishedModel['type'] {
  if (models.isOfType(id, 'image')) return 'image';
  return models.isOfType(id, 'embedding') ? 'embedding' : 'text';
}

export function* publishedModels(registry: ProviderRegistry, requestQueue: RequestQueue): Iterable<PublishedModel> {
  for (const id of registry.models.ids()) {
    const model = publishedModel(id, registry, requestQueue);
    if (model !== null) yield model;
  }
}

/** Distinct image offers, the most frequent first. */
function distinctOffers(offers: readonly ImageOffer[]): ImageOffer[] {
  const counts = new Map<string, { readonly offer: ImageOffer; count: number }>();
  for (const offer of offers) {
    const key = JSON.stringify([offer.sizes, offer.max_images]);
    const known = counts.get(key);
    if (known === undefined) counts.set(key, { offer, count: 1 });
    else known.count++;
  }
  return [...counts.values()].sort((a, b) => b.count - a.count).map(({ offer }) => offer);
}
