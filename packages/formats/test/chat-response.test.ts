import type { ChatCompletion, ChatCompletionChunk } from 'openai/resources/chat/completions';
import { describe, expect, it } from 'vitest';
import { apiError } from '../src/errors/errors.js';
import { formatFor } from '../src/formats.js';
import { OutputFilter } from '../src/output/output-filter.js';
import type { OutputEvent } from '../src/output-event.js';
import { SSE_COMMENT } from '../src/sse.js';
import { eventStream, sdkClient } from './sdk-client.js';

const format = formatFor('/v1/chat/completions');
const { answer: written } = format.parse(new TextEncoder().encode('{"model":"m","messages":[{"role":"user","content":"a"}]}'));
const responseMetadata = { responseId: 'chatcmpl-5f0c', created: 1_790_000_000, model: 'org/model' };
const signed = { signature: 'MEUCIQ==', responseSha256: 'ab'.repeat(32), receipt: 'eyJ2IjoxfQ', receiptSignature: 'MEQCIA==' };
const finish: OutputEvent = {
  type: 'finish',
  reason: 'stop',
  usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
  hiddenTokens: 3,
};
const usage = {
  prompt_tokens: 11,
  completion_tokens: 7,
  total_tokens: 18,
  prompt_tokens_details: { cached_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 3 },
};
const output: OutputEvent[] = [
  { type: 'reasoning', text: 'hidden' },
  { type: 'text', text: 'Héllo 😀' },
  { type: 'text', text: '' },
  { type: 'text', text: '\n"\\ \u2028 \u0085 data: [DONE]\n\n' },
  finish,
];
const content = 'Héllo 😀\n"\\ \u2028 \u0085 data: [DONE]\n\n';
const messages = [{ role: 'user' as const, content: 'Hello' }];

/** Renders the output for the SDK's request, as provider and coordinator do together. */
function answer(events: readonly OutputEvent[] = output, end = written.signatureEvent(responseMetadata, signed)) {
  return sdkClient((body) => {
    const { request, answer: asked } = format.parse(body);
    if (request.stream) {
      const renderer = asked.stream(responseMetadata);
      const parts = events.map((event) => renderer.render(event));
      return eventStream(SSE_COMMENT + parts.join(SSE_COMMENT) + end);
    }
    const renderer = asked.plain(responseMetadata);
    renderer.add(...events);
    return new Response(renderer.body(), { headers: { 'content-type': 'application/json' } });
  });
}

function chunk(delta: ChatCompletionChunk.Choice.Delta, reason: 'stop' | null = null): ChatCompletionChunk {
  return {
    id: responseMetadata.responseId,
    object: 'chat.completion.chunk',
    created: responseMetadata.created,
    model: responseMetadata.model,
    choices: [{ index: 0, delta, logprobs: null, finish_reason: reason }],
  };
}

const chunks = [
  chunk({ role: 'assistant', content: '', refusal: null }),
  chunk({ content: 'Héllo 😀' }),
  chunk({ content: '\n"\\ \u2028 \u0085 data: [DONE]\n\n' }),
  chunk({}, 'stop'),
];
const signatureChunk = {
  ...chunk({}),
  choices: [],
  se_signature: signed.signature,
  response_hash: signed.responseSha256,
  receipt: signed.receipt,
  receipt_signature: signed.receiptSignature,
};

async function collect<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of stream) items.push(item);
  return items;
}

describe('through the official SDK', () => {
  it('a plain response is a chat completion', async () => {
    const expected: ChatCompletion = {
      id: responseMetadata.responseId,
      object: 'chat.completion',
      created: responseMetadata.created,
      model: responseMetadata.model,
      choices: [{ index: 0, message: { role: 'assistant', content, refusal: null }, logprobs: null, finish_reason: 'stop' }],
      usage,
    };
    expect(await answer().client.chat.completions.create({ model: 'm', messages })).toEqual(expected);
  });

  it('a stream is the role, one chunk per piece, the finish reason and the signature', async () => {
    const stream = await answer().client.chat.completions.create({ model: 'm', messages, stream: true });
    expect(await collect(stream)).toEqual([...chunks, signatureChunk]);
  });

  it('a stream with usage has it in a chunk of its own', async () => {
    const stream = await answer().client.chat.completions.create({
      model: 'm',
      messages,
      stream: true,
      stream_options: { include_usage: true },
    });
    const withUsage: ChatCompletionChunk[] = [...chunks.map((each) => ({ ...each, usage: null })), { ...chunk({}), choices: [], usage }];
    expect(await collect(stream)).toEqual([...withUsage, signatureChunk]);
  });

  it("the SDK's stream helper puts the same completion together", async () => {
    const { client } = answer();
    const plain = await client.chat.completions.create({ model: 'm', messages });
    const stream = client.chat.completions.stream({ model: 'm', messages, stream_options: { include_usage: true } });
    const { choices, usage: counted } = await stream.finalChatCompletion();
    expect(choices[0]?.message.content).toBe(plain.choices[0]?.message.content);
    expect(choices[0]?.finish_reason).toBe('stop');
    expect(counted).toEqual(plain.usage);
  });

  it('an output without visible text is an empty message', async () => {
    const { client } = answer([{ type: 'reasoning', text: 'hidden' }, finish]);
    expect((await client.chat.completions.create({ model: 'm', messages })).choices[0]?.message.content).toBe('');
    const stream = await client.chat.completions.create({ model: 'm', messages, stream: true });
    expect(await collect(stream)).toEqual([chunks[0], chunks[3], signatureChunk]);
  });

  it('an error in a stream is thrown after the preceding events', async () => {
    const { client, requests } = answer(output.slice(0, 2), written.streamError(apiError('provider_failed')));
    const stream = await client.chat.completions.create({ model: 'm', messages, stream: true });
    const seen: ChatCompletionChunk[] = [];
    const reading = (async () => {
      for await (const each of stream) seen.push(each);
    })();
    await expect(reading).rejects.toMatchObject({ code: 'provider_failed', type: 'server_error', param: null });
    expect(seen).toEqual(chunks.slice(0, 2));
    expect(requests).toHaveLength(1);
  });

  it('stream and plain response of the same output have the same content', async () => {
    const pieces = ['<th', 'ink>plan</', 'think>\n', '\nOne ', '😀'.slice(0, 1), '😀'.slice(1), ' two EN', 'D three'];
    const filter = new OutputFilter({ stop: ['END'] });
    const events = [...pieces.flatMap((piece) => filter.push(piece, 1)), ...filter.end(), finish];
    const { client } = answer(events);
    const plain = await client.chat.completions.create({ model: 'm', messages });
    const stream = await client.chat.completions.create({ model: 'm', messages, stream: true });
    const deltas = (await collect(stream)).map((each) => each.choices[0]?.delta.content ?? '');
    expect(plain.choices[0]?.message.content).toBe('One 😀 two ');
    expect(deltas.join('')).toBe('One 😀 two ');
  });
});

const { answer: streamed } = format.parse(new TextEncoder().encode(JSON.stringify({ model: 'm', messages, stream: true })));

describe('the bytes', () => {
  it('of a stream are always the same', () => {
    const renderer = streamed.stream(responseMetadata);
    const head = 'data: {"id":"chatcmpl-5f0c","object":"chat.completion.chunk","created":1790000000,"model":"org/model",';
    expect(renderer.render({ type: 'text', text: 'a\u2028' }, finish)).toBe(
      `${head}"choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]}\n\n` +
        `${head}"choices":[{"index":0,"delta":{"content":"a\\u2028"},"logprobs":null,"finish_reason":null}]}\n\n` +
        `${head}"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}\n\n`,
    );
    expect(written.signatureEvent(responseMetadata, signed)).toBe(
      `${head}"choices":[],"se_signature":"MEUCIQ==","response_hash":"${'ab'.repeat(32)}","receipt":"eyJ2IjoxfQ","receipt_signature":"MEQCIA=="}\n\n` +
        'data: [DONE]\n\n',
    );
  });

  it("contain no line break except the framing's, for readers with more line breaks", () => {
    const renderer = streamed.stream({ ...responseMetadata, model: 'a\u2028b' });
    const text = Array.from({ length: 0x2100 }, (_, unit) => String.fromCharCode(unit)).join('');
    const rendered = renderer.render({ type: 'text', text });
    for (const lineBreak of ['\r', '\v', '\f', '\x1c', '\x1d', '\x1e', '\x85', '\u2028', '\u2029'])
      expect(rendered).not.toContain(lineBreak);
    const event = rendered.split('\n\n')[1] ?? '';
    expect(JSON.parse(event.slice('data: '.length)).choices[0].delta.content).toBe(text);
  });
});

describe('a renderer', () => {
  it('takes nothing after the finish event', () => {
    const stream = written.stream(responseMetadata);
    stream.render(finish);
    expect(() => stream.render({ type: 'text', text: 'a' })).toThrow('after the finish event');
    const plain = written.plain(responseMetadata);
    plain.add(finish);
    expect(() => plain.add(finish)).toThrow('after the finish event');
  });

  it('has no plain body before the finish event', () => {
    expect(() => written.plain(responseMetadata).body()).toThrow('not finished');
  });
});
