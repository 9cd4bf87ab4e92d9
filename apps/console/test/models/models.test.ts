import { describe, expect, it } from 'vitest';
import { formatContext, formatLatency, formatUptime } from '../../src/features/models/model-figures.js';
import { pricesOf, type ServedModel } from '../../src/features/models/served-models.js';
import { featuresOf } from '../../src/pages/models/model-features.js';
import { filterModels } from '../../src/pages/models/model-filter.js';
import { modelSnippets } from '../../src/pages/models/model-snippets.js';

function model(id: string, fields: Partial<ServedModel> = {}, metadata: Partial<ServedModel['metadata']> = {}): ServedModel {
  return {
    id,
    name: id,
    context_length: 4096,
    architecture: { input_modalities: ['text'] },
    pricing: { prompt: '0.00000005', completion: '0.0000002', input_cache_read: '0.00000001' },
    supported_parameters: ['tools', 'structured_outputs', 'seed'],
    metadata: { model_type: 'text', quantization: '8bit', provider_count: 1, ...metadata },
    statistics: { first_token_ms: null, tokens_per_second: null, duration_ms: null, uptime: null },
    ...fields,
  };
}

const PAINTER = model(
  'org/painter',
  { pricing: { prompt: '0', completion: '0', input_cache_read: '0', image_output: '0.002' }, supported_parameters: ['n', 'size'] },
  { model_type: 'image', sizes: ['512x512'], max_images: 1 },
);
const SEEING = model(
  'org/seeing',
  { architecture: { input_modalities: ['text', 'image'] } },
  { max_input_images: 8, max_image_tokens: 280, provider_count: 2 },
);
const VECTORS = model('org/vectors', { supported_parameters: ['encoding_format'] }, { model_type: 'embedding', provider_count: 3 });

describe('prices of a model', () => {
  it('are exact micro-USD per million tokens, or per image', () => {
    expect(pricesOf(model('a'))).toEqual({ input: 50_000, cachedInput: 10_000, output: 200_000, image: null });
    expect(pricesOf(VECTORS)).toMatchObject({ input: 50_000, output: null });
    expect(pricesOf(PAINTER)).toEqual({ input: null, cachedInput: null, output: null, image: 2000 });
    expect(pricesOf(model('a', { pricing: { ...model('a').pricing, prompt: '0.00000007' } })).input).toBe(70_000);
  });
});

describe('measured figures', () => {
  it('have two or three significant digits', () => {
    expect([4.4, 320, 1449, 12_400].map(formatLatency)).toEqual(['4 ms', '320 ms', '1.4 s', '12 s']);
    expect([4096, 32_768, 5000].map(formatContext)).toEqual(['4K', '32K', '5,000']);
  });
  it('show 100% only for a model without a failed check', () => {
    expect([1, 0.99999, 0.98765, 0].map(formatUptime)).toEqual(['100%', '99.99%', '98.76%', '0.00%']);
  });
});

describe('the list of served models', () => {
  const all = [model('tiny'), VECTORS, PAINTER, SEEING];
  const ids = (search: string, type: Parameters<typeof filterModels>[1]['type'] = 'all') =>
    filterModels(all, { search, type }).map(({ id }) => id);

  it('lists models with the most machines first, and filters by text and type', () => {
    expect(ids('')).toEqual(['org/vectors', 'org/seeing', 'org/painter', 'tiny']);
    expect(ids(' ORG/')).toEqual(['org/vectors', 'org/seeing', 'org/painter']);
    expect(ids('', 'text')).toEqual(['org/seeing', 'tiny']);
    expect(ids('', 'vision')).toEqual(['org/seeing']);
    expect(ids('tiny', 'image')).toEqual([]);
  });
});

describe('features', () => {
  const supported = (one: ServedModel) => featuresOf(one).flatMap(({ label, supported }) => (supported ? [label] : []));

  it('follow the parameters that take effect, and the price of cached tokens', () => {
    expect(supported(model('a'))).toEqual([
      'Streaming',
      'Tools',
      'Structured output (JSON schema)',
      'Seed',
      'Lower price for cached input tokens',
    ]);
    expect(
      supported(model('a', { supported_parameters: ['reasoning'], pricing: { ...model('a').pricing, input_cache_read: '0.00000005' } })),
    ).toEqual(['Streaming', 'Reasoning']);
    expect(supported(SEEING)).toContain('Images as input, up to 8');
    expect(supported(VECTORS)).toEqual(['Embeddings', 'Base64 encoding']);
    expect(supported(PAINTER)).toEqual(['Sizes 512x512']);
  });
});

describe('first requests', () => {
  it('go to the endpoint of the type, with the id of the model', () => {
    const codes = (one: ServedModel) => modelSnippets(one, 'https://gateway.example').map(({ code }) => code);
    for (const [one, path, method] of [
      [model("it's"), '/v1/chat/completions', 'chat.completions.create'],
      [VECTORS, '/v1/embeddings', 'embeddings.create'],
      [PAINTER, '/v1/images/generations', 'images.generate'],
    ] as const) {
      const [curl, python, js] = codes(one);
      expect(curl).toContain(`curl https://gateway.example${path}`);
      for (const code of [python, js]) {
        expect(code).toContain(`client.${method}(`);
        expect(code).toContain(JSON.stringify(one.id));
      }
    }
    expect(codes(model("it's"))[0]).toContain(`{"model":"it'\\''s",`);
    expect(codes(PAINTER)[1]).toContain('size="512x512"');
  });
});
