import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { IMAGE_MODEL, imageProvider } from '../../images/pictures.js';
import { type Harness, MODEL, startHarness } from '../../support/harness.js';

const THINKING = 'test/thinking-1';
const EMBEDDING = 'test/embedding-1';
const VISION = 'test/vision-1';

let harness: Harness;
beforeAll(async () => {
  harness = await startHarness();
  await harness.provider();
  await harness.provider({
    models: [THINKING],
    register: (register) => ({ ...register, models: register.models.map((offer) => ({ ...offer, thinks: true, context_length: 32_768 })) }),
  });
  await harness.provider({
    models: [EMBEDDING],
    register: (register) => ({ ...register, models: register.models.map((offer) => ({ ...offer, model_type: 'embedding' })) }),
  });
  // One machine without the vision projector, and two with different image limits.
  for (const vision of [undefined, { max_images: 3, max_image_tokens: 272 }, { max_images: 7, max_image_tokens: 260 }]) {
    await harness.provider({
      models: [VISION],
      register: (register) => ({
        ...register,
        models: register.models.map((offer) => ({ ...offer, ...(vision === undefined ? {} : { vision }) })),
      }),
    });
  }
  await imageProvider(harness);
});
afterAll(() => harness.close());

interface Listed {
  readonly id: string;
  readonly supported_parameters: readonly string[];
  readonly pricing: Readonly<Record<string, string>>;
}

const listed = async (id: string): Promise<Listed> => {
  const { data } = (await (await harness.get('/v1/models')).json()) as { data: Listed[] };
  const entry = data.find((model) => model.id === id);
  if (entry === undefined) throw new Error(`${id} is not listed`);
  const alone = (await (await harness.get(`/v1/models/${id}`)).json()) as Listed & { metadata: object };
  const { metadata: _, ...members } = entry as Listed & { metadata: object };
  expect(alone).toMatchObject(members);
  return entry;
};

const setPrice = (model: string, rates: Record<string, number>) =>
  fetch(`${harness.url}/admin/v1/prices/${model}`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${harness.adminKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ prompt_per_million: 0, completion_per_million: 0, per_image: 0, ...rates }),
  }).then(async (response) => [response.status, response.status === 200 ? null : await response.text()]);

/** Request members that use each parameter, by parameter name. */
const TOOL = { type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } };
const SAMPLES: Readonly<Record<string, object>> = {
  temperature: { temperature: 0.5 },
  top_p: { top_p: 0.5 },
  top_k: { top_k: 3 },
  min_p: { min_p: 0.1 },
  frequency_penalty: { frequency_penalty: 1 },
  presence_penalty: { presence_penalty: 1 },
  repetition_penalty: { repetition_penalty: 1.5 },
  max_tokens: { max_tokens: 3 },
  max_completion_tokens: { max_completion_tokens: 3 },
  logit_bias: { logit_bias: { 1: 5 } },
  logprobs: { logprobs: true },
  top_logprobs: { logprobs: true, top_logprobs: 2 },
  seed: { seed: 7 },
  stop: { stop: ['x'] },
  response_format: { response_format: { type: 'json_object' } },
  structured_outputs: { structured_outputs: { choice: ['a', 'b'] } },
  tools: { tools: [TOOL] },
  tool_choice: { tools: [TOOL], tool_choice: 'auto' },
  parallel_tool_calls: { tools: [TOOL], parallel_tool_calls: false },
  reasoning: { reasoning: { enabled: false } },
  reasoning_effort: { reasoning_effort: 'none' },
  include_reasoning: { include_reasoning: true },
};

describe('the model list', () => {
  it('has price, context and features under the names of OpenRouter', async () => {
    expect(await listed(MODEL)).toMatchObject({
      canonical_slug: MODEL,
      name: MODEL,
      description: `Text model ${MODEL}, 8bit; context of 4096 tokens.`,
      architecture: {
        modality: 'text->text',
        input_modalities: ['text'],
        output_modalities: ['text'],
        tokenizer: 'Other',
        instruct_type: null,
      },
      pricing: { prompt: '0.00000005', completion: '0.0000002', request: '0', image: '0', input_cache_read: '0.00000005' },
      top_provider: { context_length: 4096, max_completion_tokens: 4096, is_moderated: false },
      per_request_limits: null,
      default_parameters: { temperature: 1 },
      links: { details: `/v1/models/${MODEL}` },
    });
  });

  it('shows which models read images, and that images are billed as prompt tokens', async () => {
    const entry = await listed(VISION);
    expect(entry).toMatchObject({
      description: `Text model ${VISION}, 8bit; context of 4096 tokens; reads up to 7 images per request.`,
      architecture: { modality: 'text+image->text', input_modalities: ['text', 'image'], output_modalities: ['text'] },
      pricing: { image: '0' },
      metadata: { max_input_images: 7, max_image_tokens: 272 },
    });
    const { data } = (await (await harness.get('/v1/network/models')).json()) as { data: Listed[] };
    expect(data.find(({ id }) => id === VISION)).toMatchObject({ architecture: { input_modalities: ['text', 'image'] } });
    expect((await listed(MODEL)) as object).not.toHaveProperty('metadata.max_image_tokens');
  });

  it('shows the prices of the operator exactly', async () => {
    expect(await setPrice(THINKING, { prompt_per_million: 1, completion_per_million: 10_000_000_000 })).toEqual([200, null]);
    expect((await listed(THINKING)).pricing).toMatchObject({ prompt: '0.000000000001', completion: '0.01' });
    expect(await setPrice(THINKING, {})).toEqual([200, null]);
    expect((await listed(THINKING)).pricing).toMatchObject({ prompt: '0', completion: '0', input_cache_read: '0' });
  });

  it('lists exactly the parameters of chat completions that take effect', async () => {
    const { supported_parameters: names } = await listed(THINKING);
    expect([...names].sort()).toEqual(Object.keys(SAMPLES).sort());
    expect((await listed(MODEL)).supported_parameters).toEqual(names.filter((name) => !/reasoning/.test(name)));
    for (const name of names) {
      const response = await harness.chat({ model: THINKING, ...SAMPLES[name] });
      expect([name, response.status, response.headers.get('x-inference-ignored')]).toEqual([name, 200, null]);
      await response.text();
    }
    for (const name of ['top_a', 'prediction', 'verbosity', 'web_search_options']) expect(names).not.toContain(name);
  });

  it('shows embedding and image models by their own endpoints and prices', async () => {
    expect(await listed(EMBEDDING)).toMatchObject({
      architecture: { modality: 'text->embeddings', output_modalities: ['embeddings'] },
      pricing: { prompt: '0.00000005', completion: '0' },
      top_provider: { context_length: 4096, max_completion_tokens: null },
      supported_parameters: ['dimensions', 'encoding_format'],
      default_parameters: null,
    });
    const image = await listed(IMAGE_MODEL);
    expect(image).toMatchObject({
      architecture: { modality: 'text->image', output_modalities: ['image'] },
      pricing: { prompt: '0', completion: '0', image: '0', image_output: '0.002' },
      top_provider: { context_length: null, max_completion_tokens: null },
    });
    expect(image).not.toHaveProperty('context_length');
  });

  it('gives clients of the Messages format the same members', async () => {
    const response = await fetch(`${harness.url}/v1/models/${MODEL}`, {
      headers: { 'x-api-key': harness.apiKey, 'anthropic-version': '2023-06-01' },
    });
    expect(await response.json()).toMatchObject({ type: 'model', pricing: { prompt: '0.00000005' }, name: MODEL });
  });
});
