import { EndpointSchema } from '@inference/protocol';
import { Compile } from 'typebox/compile';
import { describe, expect, it } from 'vitest';
import { MAX_CHOICES } from '../src/choices.js';
import { anthropicError } from '../src/errors/anthropic-error.js';
import { apiError } from '../src/errors/errors.js';
import { openAiError } from '../src/errors/open-ai-error.js';
import { formatFor, type TextEndpoint } from '../src/formats.js';
import { INFERENCE_SCHEMAS, inferenceRouteSchema } from '../src/openapi/inference-operations.js';
import { RESPONSE_SCHEMAS } from '../src/openapi/response-schemas.js';
import { eventsOf, responseMetadataOf, signed } from './gateway.js';
import * as outputs from './outputs.js';

const operations = Object.fromEntries(EndpointSchema.anyOf.map(({ const: endpoint }) => [endpoint, inferenceRouteSchema(endpoint)]));
const schemas = JSON.parse(JSON.stringify(INFERENCE_SCHEMAS));

/** Validates a value against a schema of the document. Null, or a description of the problem. */
function problem(name: keyof typeof RESPONSE_SCHEMAS, value: unknown): unknown {
  const schema = Compile(RESPONSE_SCHEMAS[name]);
  return schema.Check(value) ? null : schema.Errors(value);
}

describe('OpenAPI schemas of inference', () => {
  it('document every endpoint', () => {
    expect(Object.keys(operations)).toEqual([
      '/v1/chat/completions',
      '/v1/completions',
      '/v1/responses',
      '/v1/messages',
      '/v1/messages/count_tokens',
      '/v1/embeddings',
      '/v1/images/generations',
    ]);
  });

  it('refer only to schemas of the same list', () => {
    const references = [...JSON.stringify({ operations, schemas }).matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)].map(
      ([, name]) => name ?? '',
    );
    expect(references.length).toBeGreaterThan(10);
    for (const name of references) expect(schemas).toHaveProperty(name);
  });

  it('are the schemas that validate requests', () => {
    const { ChatCompletionRequest, MessagesRequest } = schemas;
    expect(ChatCompletionRequest.required).toEqual(['model', 'messages']);
    expect(MessagesRequest.required.toSorted()).toEqual(['max_tokens', 'messages', 'model']);
    expect(ChatCompletionRequest.properties.temperature.anyOf[0]).toMatchObject({ type: 'number', minimum: 0, maximum: 2 });
  });
});

describe('answers are as described:', () => {
  const BODIES: readonly [TextEndpoint, keyof typeof RESPONSE_SCHEMAS, object][] = [
    ['/v1/chat/completions', 'ChatCompletion', { messages: [{ role: 'user', content: 'a' }], include_reasoning: true, logprobs: true }],
    ['/v1/completions', 'Completion', { prompt: 'a', logprobs: 0 }],
    ['/v1/responses', 'Response', { input: 'a' }],
    ['/v1/messages', 'Message', { messages: [{ role: 'user', content: 'a' }], max_tokens: 9, thinking: { type: 'adaptive' } }],
    ['/v1/messages/count_tokens', 'TokenCount', { messages: [{ role: 'user', content: 'a' }] }],
  ];
  const parse = (endpoint: TextEndpoint, body: object) =>
    formatFor(endpoint).parse(new TextEncoder().encode(JSON.stringify({ model: 'm', ...body })));

  it.each(BODIES)('%s', (endpoint, name, body) => {
    for (const output of [outputs.text, outputs.calls, outputs.cutInThinking, outputs.stopped, outputs.empty]) {
      const parsed = parse(endpoint, body);
      const renderer = parsed.answer.plain(responseMetadataOf(parsed));
      renderer.add(...output);
      expect(problem(name, JSON.parse(renderer.body()))).toBeNull();
    }
  });

  it.each(BODIES.slice(0, 2))('%s, with as many choices as a request may ask for', (endpoint, name, body) => {
    const parsed = parse(endpoint, { ...body, n: MAX_CHOICES });
    const renderer = parsed.answer.plain(responseMetadataOf(parsed));
    for (let index = 0; index < MAX_CHOICES; index++) renderer.add({ type: 'text', text: 'a' }, { type: 'choice_finish', reason: 'stop' });
    renderer.add(...outputs.empty);
    const answer = JSON.parse(renderer.body());
    expect(answer.choices).toHaveLength(MAX_CHOICES);
    expect(problem(name, answer)).toBeNull();
  });

  it.each([
    ['/v1/chat/completions', 'ChatCompletionChunk', BODIES[0]?.[2] ?? {}],
    ['/v1/completions', 'Completion', BODIES[1]?.[2] ?? {}],
  ] as const)('%s, streamed', (endpoint, name, body) => {
    const { answer } = parse(endpoint, { ...body, stream: true, stream_options: { include_usage: true } });
    const responseMetadata = { responseId: 'a', created: 1, model: 'm' };
    const stream = answer.stream(responseMetadata).render(...outputs.text) + answer.signatureEvent(responseMetadata, signed);
    const events = eventsOf(stream).map(({ data }) => data);
    expect(events.pop()).toBe('[DONE]');
    for (const event of events) expect(problem(name, JSON.parse(event))).toBeNull();
  });

  it('errors', () => {
    expect(problem('OpenAiError', JSON.parse(openAiError(apiError('no_provider')).body))).toBeNull();
    expect(problem('AnthropicError', JSON.parse(anthropicError(apiError('no_provider')).body))).toBeNull();
  });
});
