import OpenAI from 'openai';
import type { Response, ResponseStreamEvent } from 'openai/resources/responses/responses';
import { describe, expect, it } from 'vitest';
import { apiError } from '../src/errors/errors.js';
import { formatFor } from '../src/formats.js';
import type { OutputEvent } from '../src/output-event.js';
import { eventsOf, gateway, signed } from './gateway.js';
import * as outputs from './outputs.js';

function clientOf(output: readonly OutputEvent[], end?: Parameters<typeof gateway>[1]) {
  const { fetch, requests } = gateway(output, end);
  return {
    client: new OpenAI({ apiKey: 'k', baseURL: 'http://gateway.invalid/v1', fetch: fetch as typeof globalThis.fetch, maxRetries: 0 }),
    requests,
  };
}

/** All members that Open Responses requires in a response. */
const MEMBERS =
  'id object created_at completed_at status incomplete_details model previous_response_id instructions output error tools tool_choice truncation ' +
  'parallel_tool_calls text top_p presence_penalty frequency_penalty top_logprobs temperature reasoning usage max_output_tokens max_tool_calls ' +
  'store background service_tier metadata safety_identifier prompt_cache_key';
const part = (text: string) => ({ type: 'output_text', text, annotations: [], logprobs: [] });
const message = (index: number, text: string, status = 'completed') => ({
  id: `msg_5f0c_${index}`,
  type: 'message',
  status,
  role: 'assistant',
  content: [part(text)],
});
const reasoning = (text: string, status = 'completed') => ({
  id: 'rs_5f0c_0',
  type: 'reasoning',
  status,
  summary: [],
  content: [{ type: 'reasoning_text', text }],
});
const call = (index: number, id: string, name: string, json: string) => ({
  id: `fc_5f0c_${index}`,
  type: 'function_call',
  status: 'completed',
  call_id: id,
  name,
  arguments: json,
});
const body = { model: 'm', input: 'Hello' };

async function collect(stream: AsyncIterable<ResponseStreamEvent>): Promise<ResponseStreamEvent[]> {
  const events: ResponseStreamEvent[] = [];
  for await (const event of stream) events.push(event);
  return events;
}

describe('through the official SDK', () => {
  it.each<[string, OutputEvent[], string, object[]]>([
    ['text', outputs.text, 'completed', [reasoning('think hard'), message(1, outputs.TEXT)]],
    [
      'tool calls',
      outputs.calls,
      'completed',
      [message(0, 'Let me look.'), call(1, 'call_a', 'weather', outputs.ARGUMENTS), call(2, 'call_b', 'time', '{}')],
    ],
    ['a limit inside thinking', outputs.cutInThinking, 'incomplete', [reasoning('think'), message(1, '', 'incomplete')]],
    ['nothing', outputs.empty, 'completed', [message(0, '')]],
  ])('%s is the same response, streamed or not', async (_case, output, status, items) => {
    const { client } = clientOf(output);
    const plain: Response = await client.responses.create(body);
    expect(plain.output).toEqual(items);
    expect(plain.status).toBe(status);
    expect(plain.incomplete_details).toEqual(status === 'incomplete' ? { reason: 'max_output_tokens' } : null);
    expect(plain.usage).toEqual({
      input_tokens: 11,
      input_tokens_details: { cached_tokens: 4, cache_write_tokens: 0 },
      output_tokens: 7,
      output_tokens_details: { reasoning_tokens: 3 },
      total_tokens: 18,
    });
    for (const member of MEMBERS.split(' ')) expect(plain).toHaveProperty(member);
    const events = await collect(await client.responses.create({ ...body, stream: true }));
    const last = events.at(-1);
    expect(last?.type).toBe(`response.${status}`);
    const { output_text: _text, ...whole } = plain;
    expect(last).toMatchObject({ response: whole });
    const helped = await client.responses.stream(body).finalResponse();
    expect(helped.output).toMatchObject(items);
  });

  it('events come in the order of the real API, numbered, each with the place it belongs to', async () => {
    const { client } = clientOf(outputs.text);
    const events = await collect(await client.responses.create({ ...body, stream: true }));
    expect(events.map(({ type }) => type.replace('response.', ''))).toEqual([
      'created',
      'in_progress',
      'output_item.added',
      'content_part.added',
      'reasoning_text.delta',
      'reasoning_text.delta',
      'reasoning_text.done',
      'content_part.done',
      'output_item.done',
      'output_item.added',
      'content_part.added',
      'output_text.delta',
      'output_text.delta',
      'output_text.done',
      'content_part.done',
      'output_item.done',
      'completed',
    ]);
    expect(events.map((event) => event.sequence_number)).toEqual(events.map((_, index) => index));
    const place = { item_id: 'msg_5f0c_1', output_index: 1, content_index: 0 };
    expect(events[11]).toEqual({ type: 'response.output_text.delta', sequence_number: 11, ...place, delta: 'Héllo 😀', logprobs: [] });
    expect(events[13]).toEqual({ type: 'response.output_text.done', sequence_number: 13, ...place, text: outputs.TEXT, logprobs: [] });
    expect(events[8]).toMatchObject({ output_index: 0, item: reasoning('think hard') });
    expect(events[0]).toMatchObject({ response: { status: 'in_progress', output: [], usage: null } });
  });

  it('calls stream their arguments', async () => {
    const { client } = clientOf(outputs.calls);
    const events = await collect(await client.responses.create({ ...body, stream: true }));
    const ofCall = events.filter((event) => 'output_index' in event && event.output_index === 1);
    expect(ofCall).toMatchObject([
      { type: 'response.output_item.added', item: { type: 'function_call', call_id: 'call_a', arguments: '', status: 'in_progress' } },
      { type: 'response.function_call_arguments.delta', item_id: 'fc_5f0c_1', delta: '{"city":"Gen' },
      { type: 'response.function_call_arguments.delta', item_id: 'fc_5f0c_1' },
      { type: 'response.function_call_arguments.done', name: 'weather', arguments: outputs.ARGUMENTS },
      { type: 'response.output_item.done', item: { status: 'completed', arguments: outputs.ARGUMENTS } },
    ]);
  });

  it('log probabilities are in deltas and in the whole', async () => {
    const logprobs = [{ token: 'a', logprob: -0.5, bytes: [97], top_logprobs: [{ token: 'b', logprob: -1, bytes: [98] }] }];
    const { client, requests } = clientOf([{ type: 'text', text: 'a', logprobs }, ...outputs.empty.slice(1)]);
    const plain = await client.responses.create({ ...body, include: ['message.output_text.logprobs'], top_logprobs: 1 });
    expect(requests[0]?.request.logprobs).toBe(1);
    expect(plain.output).toMatchObject([{ content: [{ text: 'a', logprobs }] }]);
    const events = await collect(await client.responses.create({ ...body, stream: true }));
    expect(events.find(({ type }) => type === 'response.output_text.delta')).toMatchObject({ logprobs });
  });

  it('an error in a stream is thrown', async () => {
    const { client } = clientOf(outputs.text.slice(0, 4), ({ answer }) => answer.streamError(apiError('provider_failed')));
    const reading = collect(await client.responses.create({ ...body, stream: true }));
    await expect(reading).rejects.toMatchObject({ code: 'provider_failed', type: 'server_error' });
  });

  it('an unknown previous response is refused', async () => {
    const { client } = clientOf(outputs.text);
    const asking = client.responses.create({ ...body, previous_response_id: 'resp_0' });
    await expect(asking).rejects.toMatchObject({ status: 400, code: 'previous_response_not_found', param: 'previous_response_id' });
  });

  it('parameters of the request are repeated', async () => {
    const { client } = clientOf(outputs.text);
    const parameters = { type: 'object', properties: {} };
    const plain = await client.responses.create({
      ...body,
      instructions: 'Be brief.',
      temperature: 0.5,
      max_output_tokens: 20,
      metadata: { a: 'b' },
      tools: [
        { type: 'function', name: 'f', parameters, strict: true },
        { type: 'namespace', name: 'n', description: 'd', tools: [] },
      ],
      tool_choice: { type: 'function', name: 'f' },
      text: { format: { type: 'json_schema', name: 's', schema: { type: 'object' }, strict: true } },
      prompt_cache_key: 'k',
    });
    expect(plain).toMatchObject({
      instructions: 'Be brief.',
      temperature: 0.5,
      top_p: 1,
      max_output_tokens: 20,
      metadata: { a: 'b' },
      tools: [{ type: 'function', name: 'f', description: null, parameters, strict: true }],
      tool_choice: { type: 'function', name: 'f' },
      text: { format: { type: 'json_schema', name: 's', schema: { type: 'object' }, strict: true } },
      prompt_cache_key: 'k',
      store: false,
    });
  });
});

describe('the bytes of a stream', () => {
  const parse = (json: object) => formatFor('/v1/responses').parse(new TextEncoder().encode(JSON.stringify(json)));
  const responseMetadata = { responseId: 'resp_5f0c', created: 1, model: 'm' };

  it('name the type of each event, and end with the signature in a comment and the terminator', () => {
    const { answer } = parse({ ...body, stream: true });
    for (const { event, data } of eventsOf(answer.stream(responseMetadata).render(...outputs.calls)))
      expect(JSON.parse(data).type).toBe(event);
    expect(answer.signatureEvent(responseMetadata, signed)).toMatch(
      /^: inference-signature \{"se_signature":"MEUCIQ==".*\}\n\ndata: \[DONE\]\n\n$/,
    );
  });

  it('equal a chat completion for a body with messages', () => {
    const { answer, params } = parse({ model: 'm', messages: [{ role: 'user', content: 'a' }], stream: true });
    expect(params.endpoint).toBe('/v1/responses');
    expect(answer.idPrefix).toBe('chatcmpl-');
    expect(answer.signatureEvent(responseMetadata, signed)).toContain('"object":"chat.completion.chunk"');
  });
});
