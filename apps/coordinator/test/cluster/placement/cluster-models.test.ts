import type { ImageOffer, ModelType, VisionOffer } from '@inference/protocol';
import { EMPTY_DIGEST, type ModelDigest } from '@inference/scheduler';
import { expect, it } from 'vitest';
import { ClusterModels } from '../../../src/cluster/placement/cluster-models.js';
import type { NetworkModels } from '../../../src/inference/placements.js';

type Listener = Parameters<NetworkModels['onCapacity']>[0];

const SMALL: ImageOffer = { sizes: ['512x512'], max_images: 1 };
const LARGE: ImageOffer = { sizes: ['1024x1024'], max_images: 4 };

function digest(serving: number, maxContextTokens: number | null): ModelDigest {
  return { ...EMPTY_DIGEST, serving, totalSlots: serving, maxContextTokens };
}

/** `shared` is served here and by two peers, `own` only here, `far` and `picture` only by peers. */
function models() {
  const localListeners = new Set<Listener>();
  const local: NetworkModels = {
    serves: (model) => model === 'own' || model === 'shared',
    returnsAt: () => null,
    isOfType: (model, type) => type === 'text' && (model === 'own' || model === 'shared'),
    listedNames: () => ['own', 'shared'],
    contextLength: (model) => (model === 'own' || model === 'shared' ? 4096 : null),
    vision: (model) => (model === 'shared' ? { max_images: 2, max_image_tokens: 900 } : null),
    imageOffers: () => new Map([['shared-picture', [SMALL]]]),
    onCapacity: (listener) => {
      localListeners.add(listener);
      return () => localListeners.delete(listener);
    },
  };
  const digests: Record<string, readonly ModelDigest[]> = { shared: [digest(2, 8192), digest(3, null)], far: [digest(1, null)] };
  const published: Record<string, { readonly type: ModelType; readonly images: ImageOffer[]; vision: VisionOffer | null }> = {
    shared: { type: 'text', images: [], vision: { max_images: 4, max_image_tokens: 300 } },
    far: { type: 'embedding', images: [], vision: null },
    'shared-picture': { type: 'image', images: [LARGE], vision: null },
    picture: { type: 'image', images: [LARGE], vision: null },
  };
  const membership = {
    digestsAtPeers: (model: string) => (digests[model] ?? []).map((one, index) => [`peer-${index}`, one] as const),
    isServedByPeers: (model: string) => model in published,
    offersAtPeers: (model: string) => [published[model]].filter((one) => one !== undefined),
    modelsAtPeers: () => new Set(Object.keys(published)),
    refresh: () => Promise.resolve(),
  };
  return { cluster: new ClusterModels({ local, membership }), localListeners };
}

it('knows the models of this coordinator and of its peers', () => {
  const { cluster } = models();
  expect(['own', 'shared', 'far', 'none'].map((model) => cluster.serves(model))).toEqual([true, true, true, false]);
  expect(['own', 'shared', 'far'].map((model) => cluster.servingAtPeers(model))).toEqual([0, 5, 1]);
  expect(cluster.isOfType('far', 'embedding')).toBe(true);
  expect(cluster.isOfType('far', 'text')).toBe(false);
  expect([...cluster.listedNames()].sort()).toEqual(['far', 'own', 'picture', 'shared', 'shared-picture']);
});

it('finds the longest context of all, but that of a named local provider only here', () => {
  const { cluster } = models();
  const named = { providerSerial: 'C02', providerId: null };
  expect(cluster.contextLength('shared', null)).toBe(8192);
  expect(cluster.contextLength('shared', named)).toBe(4096);
  expect(cluster.contextLength('far', null)).toBe(0);
  expect(cluster.contextLength('none', null)).toBeNull();
});

it('joins the image offers of all coordinators', () => {
  expect(models().cluster.imageOffers()).toEqual(
    new Map([
      ['shared-picture', [SMALL, LARGE]],
      ['picture', [LARGE]],
    ]),
  );
});

it('joins the bounds of images in prompts', () => {
  const { cluster } = models();
  expect(cluster.vision('shared')).toEqual({ max_images: 4, max_image_tokens: 900 });
  expect(['own', 'far', 'none'].map((model) => cluster.vision(model))).toEqual([null, null, null]);
});

it('calls back for capacity here and at peers, until unsubscribed', () => {
  const { cluster, localListeners } = models();
  const heard: string[] = [];
  const stop = cluster.onCapacity((changed) => heard.push(...changed.map(({ id }) => id)));
  for (const listener of localListeners) listener([{ id: 'own' }]);
  cluster.digestsChanged([{ id: 'far' }]);
  stop();
  cluster.digestsChanged([{ id: 'far' }]);
  expect(heard).toEqual(['own', 'far']);
  expect(localListeners.size).toBe(0);
});
