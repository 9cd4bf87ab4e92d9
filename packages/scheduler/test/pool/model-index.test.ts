import type { ModelOffer, ModelType } from '@inference/protocol';
import { expect, it } from 'vitest';
import { ThroughputStats } from '../../src/cost/throughput-stats.js';
import { ModelIndex } from '../../src/pool/model-index.js';
import { NOW, provider } from '../providers.js';

const hardware = { chip_family: 'M4', cpu_cores: 12, gpu_cores: 38, bandwidth_gbs: 400 };
const offerOf = (type: ModelType): ModelOffer => ({
  id: 'm',
  model_type: type,
  display_name: 'm',
  quantization: '8bit',
  context_length: 4096,
});
const sessionOf = (name: string, type: ModelType) => {
  const { facts } = provider(name);
  return { facts, models: [offerOf(type)], registration: { identity: { providerId: facts.providerId }, hardware } };
};

const TYPES: readonly ModelType[] = ['text', 'embedding', 'image'];

it.each(TYPES.flatMap((from) => TYPES.filter((to) => to !== from).map((to) => [from, to] as const)))(
  'a model offered as %s, then as %s, is of the new type only',
  (from, to) => {
    const index = new ModelIndex<ReturnType<typeof sessionOf>>(new ThroughputStats());
    const session = sessionOf('a', from);
    const typesNow = () => TYPES.filter((type) => index.isOfType('m', type));
    index.update(session, session.facts, NOW);
    expect(typesNow()).toEqual([from]);

    session.models = [offerOf(to)];
    index.update(session, session.facts, NOW);
    expect(typesNow()).toEqual([to]);
    expect([...index.imageProviders().keys()]).toEqual(to === 'image' ? ['m'] : []);

    index.remove(session);
    expect(typesNow()).toEqual([]);
  },
);
