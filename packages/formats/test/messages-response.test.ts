import Anthropic, { type AnthropicError } from '@anthropic-ai/sdk';
import type { Message } from '@anthropic-ai/sdk/resources/messages';
import OldAnthropic from 'anthropic-old';
import { describe, expect, it } from 'vitest';
import { anthropicError } from '../src/errors/anthropic-error.js';
import { ERRORS, type ErrorCode } from '../src/errors/error-table.js';
import { apiError } from '../src/errors/errors.js';
import { formatFor } from '../src/formats.js';
import type { OutputEvent } from '../src/output-event.js';
import { eventsOf, gateway, signed } from './gateway.js';
import * as outputs from './outputs.js';

const SDKS = [
  ['of today', Anthropic],
  ['before 1.0', OldAnthropic as unknown as typeof Anthropic],
] as const;
const body = { model: 'm', max_tokens: 100, messages: [{ role: 'user' as const, content: 'Hello' }] };
const thinking = { type: 'enabled' as const, budget_tokens: 1024 };

function clientOf(Sdk: typeof Anthropic, output: readonly OutputEvent[]) {
  const { fetch, requests } = gateway(output);
  return {
    client: new Sdk({ apiKey: 'k', baseURL: 'http://gateway.invalid', fetch: fetch as typeof globalThis.fetch, maxRetries: 0 }),
    requests,
  };
}

const usage = {
  input_tokens: 11,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: 7,
  output_tokens_details: { thinking_tokens: 3 },
  cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
  service_tier: 'standard',
};
const message = {
  id: 'msg_5f0c',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [{ type: 'text', text: outputs.TEXT }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  stop_details: null,
  container: null,
  usage,
};
const thought = { type: 'thinking', thinking: 'think hard', signature: 'msg_5f0c' };

describe.each(SDKS)('through the official SDK %s', (_, Sdk) => {
  it.each<[string, OutputEvent[], object, object]>([
    ['text', outputs.text, {}, message],
    ['thinking that was asked for', outputs.text, { thinking }, { ...message, content: [thought, message.content[0]] }],
    ['thinking that shall be left out', outputs.text, { thinking: { type: 'adaptive', display: 'omitted' } }, message],
    [
      'tool calls',
      outputs.calls,
      {},
      {
        ...message,
        content: [
          { type: 'text', text: 'Let me look.' },
          { type: 'tool_use', id: 'call_a', name: 'weather', input: { city: 'Genève', days: [1, 2] } },
          { type: 'tool_use', id: 'call_b', name: 'time', input: {} },
        ],
        stop_reason: 'tool_use',
      },
    ],
    [
      'a limit inside thinking',
      outputs.cutInThinking,
      {},
      { ...message, content: [{ type: 'text', text: '' }], stop_reason: 'max_tokens' },
    ],
    [
      'a stop sequence',
      outputs.stopped,
      {},
      { ...message, content: [{ type: 'text', text: 'one ' }], stop_reason: 'stop_sequence', stop_sequence: 'END' },
    ],
    ['nothing', outputs.empty, {}, { ...message, content: [{ type: 'text', text: '' }] }],
  ])('%s is the same message, streamed or not', async (_case, output, members, expected) => {
    const { client } = clientOf(Sdk, output);
    const plain: Message = await client.messages.create({ ...body, ...members });
    expect(plain).toEqual(expected);
    const helped = await client.messages.stream({ ...body, ...members }).finalMessage();
    expect(helped).toMatchObject(expected);
  });

  it('a stream begins with the tokens of the prompt and ends with message_stop', async () => {
    const { client } = clientOf(Sdk, outputs.calls);
    const types: string[] = [];
    for await (const event of await client.messages.create({ ...body, stream: true })) {
      types.push(event.type);
      if (event.type === 'message_start') {
        expect(event.message).toMatchObject({ content: [], stop_reason: null, usage: { input_tokens: 11, output_tokens: 0 } });
      }
    }
    const block = (deltas: number) => ['content_block_start', ...Array<string>(deltas).fill('content_block_delta'), 'content_block_stop'];
    expect(types).toEqual(['message_start', ...block(1), ...block(2), ...block(1), 'message_delta', 'message_stop']);
  });

  const cache_control = { type: 'ephemeral' as const };
  const cached = { type: 'text' as const, text: 'Hello', cache_control };
  const result = { type: 'tool_result' as const, tool_use_id: 'call_a', content: [cached] };
  const called = { role: 'assistant' as const, content: [{ type: 'tool_use' as const, id: 'call_a', name: 'f', input: {} }] };
  const tool = { name: 'f', input_schema: { type: 'object' as const } };
  it.each<[string, object, boolean]>([
    ['at the top', { cache_control }, true],
    ['in the system prompt', { system: [cached] }, true],
    ['in a message', { messages: [{ role: 'user', content: [cached] }] }, true],
    ['in a tool result', { tools: [tool], messages: [body.messages[0], called, { role: 'user', content: [result] }] }, true],
    ['in a tool', { tools: [{ ...tool, cache_control }] }, true],
    ['that is null', { system: [{ ...cached, cache_control: null }] }, false],
    ['only in name', { tools: [{ ...tool, input_schema: { type: 'object', properties: { cache_control: {} } } }] }, false],
  ])('cached tokens are reported apart with a cache_control %s', async (_where, members, apart) => {
    const { client } = clientOf(Sdk, outputs.text);
    const split = { input_tokens: apart ? 7 : 11, cache_creation_input_tokens: 0, cache_read_input_tokens: apart ? 4 : 0 };
    expect((await client.messages.create({ ...body, ...members })).usage).toMatchObject(split);
    for await (const event of await client.messages.create({ ...body, ...members, stream: true })) {
      if (event.type === 'message_start') expect(event.message.usage).toMatchObject(split);
      if (event.type === 'message_delta') expect(event.usage).toMatchObject(split);
    }
  });

  it('counts tokens', async () => {
    const { client, requests } = clientOf(Sdk, [{ type: 'start', promptTokens: 14 }]);
    expect(await client.messages.countTokens({ model: 'm', system: 's', messages: body.messages })).toEqual({ input_tokens: 14 });
    expect(requests[0]?.request).toMatchObject({
      task: 'count',
      prompt: { messages: [{ role: 'system', content: 's' }, { role: 'user' }] },
    });
    expect(requests[0]?.params).toEqual({
      endpoint: '/v1/messages/count_tokens',
      model: 'm',
      stream: false,
      maxTokens: 1,
      providerSerial: null,
    });
  });

  it('an error in a stream is thrown', async () => {
    const { fetch } = gateway(outputs.text.slice(0, 4), ({ answer }) => answer.streamError(apiError('provider_failed'), 'req_9'));
    const client = new Sdk({ apiKey: 'k', baseURL: 'http://gateway.invalid', fetch: fetch as typeof globalThis.fetch });
    await expect(client.messages.stream(body).finalMessage()).rejects.toMatchObject({
      error: { type: 'error', error: { type: 'api_error', message: ERRORS.provider_failed.message }, request_id: 'req_9' },
    });
  });

  it('a refusal is an error with its type', async () => {
    const { client } = clientOf(Sdk, outputs.text);
    const error = await client.messages.create({ ...body, model: '' }).catch((reason: AnthropicError) => reason);
    expect(error).toMatchObject({ status: 400, error: { error: { type: 'invalid_request_error' }, request_id: 'req_1' } });
  });
});

describe('the bytes of a stream', () => {
  const parsed = formatFor('/v1/messages').parse(new TextEncoder().encode(JSON.stringify({ ...body, stream: true })));
  const responseMetadata = { responseId: 'msg_5f0c', created: 1, model: 'm' };

  it('name the type of each event on a line of its own', () => {
    const events = eventsOf(parsed.answer.stream(responseMetadata).render(...outputs.text));
    for (const { event, data } of events) expect(JSON.parse(data).type).toBe(event);
    expect(events.filter(({ event }) => event === 'ping')).toHaveLength(2);
  });

  it('are followed by the signature in a comment', () => {
    const members = `"se_signature":"MEUCIQ==","response_hash":"${'ab'.repeat(32)}","receipt":"eyJ2IjoxfQ","receipt_signature":"MEQCIA=="`;
    expect(parsed.answer.signatureEvent(responseMetadata, signed)).toBe(`: inference-signature {${members}}\n\n`);
  });

  it('show nothing before the first output, so that a failure can still be an HTTP error', () => {
    const stream = parsed.answer.stream(responseMetadata);
    expect(stream.render({ type: 'start', promptTokens: 3 }, { type: 'reasoning', text: 'x' })).toBe('');
    expect(eventsOf(stream.render({ type: 'ping' })).map(({ event }) => event)).toEqual(['message_start', 'ping']);
  });
});

describe('errors', () => {
  it.each<[ErrorCode, number, string]>([
    ['invalid_json', 400, 'invalid_request_error'],
    ['unsupported_parameter', 400, 'invalid_request_error'],
    ['context_length_exceeded', 400, 'invalid_request_error'],
    ['invalid_api_key', 401, 'authentication_error'],
    ['insufficient_quota', 402, 'billing_error'],
    ['forbidden', 403, 'permission_error'],
    ['model_not_found', 404, 'not_found_error'],
    ['body_too_large', 413, 'request_too_large'],
    ['rate_limit_exceeded', 429, 'rate_limit_error'],
    ['internal', 500, 'api_error'],
    ['provider_failed', 500, 'api_error'],
    ['no_provider', 529, 'overloaded_error'],
    ['provider_timeout', 504, 'timeout_error'],
  ])('%s is %i %s', (code, status, type) => {
    const shown = anthropicError(apiError(code), 'req_2');
    expect(shown.status).toBe(status);
    expect(JSON.parse(shown.body)).toEqual({ type: 'error', error: { type, message: ERRORS[code].message }, request_id: 'req_2' });
  });
});
