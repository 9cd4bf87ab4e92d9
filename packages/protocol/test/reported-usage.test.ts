import { expect, test, vi } from 'vitest';
import { utf8 } from '../src/bytes.js';
import type { Endpoint } from '../src/ids.js';
import { agreesWithReceipt, UsageReader, type UsageReport } from '../src/reported-usage.js';

const CHAT = '/v1/chat/completions';
const usage = { prompt_tokens: 7, completion_tokens: 4, total_tokens: 11 };
const receipt = (endpoint: Endpoint, hidden_tokens = 0) => ({ endpoint, usage, hidden_tokens });

function read(text: string, endpoint: Endpoint = CHAT, stream = false, size = Number.POSITIVE_INFINITY): UsageReport {
  const reader = new UsageReader(endpoint, stream);
  const bytes = utf8(text);
  for (let at = 0; at < bytes.length; at += size) reader.push(bytes.subarray(at, at + size));
  return reader.end();
}

const values = (report: UsageReport) => (report === 'unreadable' ? report : report.map(({ value }) => value));

const nested = {
  choices: [{ message: { content: '"usage":{"prompt_tokens":1} \\" \\\\', usage: { prompt_tokens: 1 } } }],
  x: { usage: 2 },
};

test('of a plain body the usage at its root is read, however the bytes are split', () => {
  const text = JSON.stringify({ ...nested, usage, after: ['usage', { usage: 3 }, 'x"usage"'] });
  for (const size of [1, 2, 3, 7, 64, 1e9]) expect(values(read(text, CHAT, false, size))).toEqual([usage]);
});

test.each([
  ['white space', '{ "usage"\n :\t{"prompt_tokens" : 7}  }', [{ prompt_tokens: 7 }]],
  ['escapes in the name', '{"\\u0075s\\u0061ge":{"prompt_tokens":7}}', [{ prompt_tokens: 7 }]],
  ['a byte order mark', '\uFEFF{"usage":{"prompt_tokens":7}}', [{ prompt_tokens: 7 }]],
  ['two of them', '{"usage":{"a":1},"usage":{"a":2}}', [{ a: 1 }, { a: 2 }]],
  ['the same one twice', '{"usage":{"a":1},"usage":{"a":1}}', [{ a: 1 }]],
  ['null', '{"usage":null}', []],
  ['braces and commas inside', '{"usage":{"a":"},\\"","b":[1,{"c":2}]},"d":1}', [{ a: '},"', b: [1, { c: 2 }] }]],
  ['no JSON', 'hello "usage":{"a":1}', []],
  ['an array', '[{"usage":{"a":1}}]', []],
  ['no value', '{"usage":}', 'unreadable'],
  ['a value that is too long', `{"usage":{"a":"${'x'.repeat(5000)}"}}`, 'unreadable'],
  ['too many', `{${Array.from({ length: 9 }, (_, a) => `"usage":{"a":${a}}`).join()}}`, 'unreadable'],
])('%s', (_, text, expected) => {
  for (const size of [1, 5, 1e9]) expect(values(read(text, CHAT, false, size))).toEqual(expected);
});

test('of a stream the usage of every event is read, also where an event has several lines', () => {
  const text = [
    `data: ${JSON.stringify({ ...nested, usage: null })}\n\n`,
    ': a comment "usage":{"a":1}\n\n',
    'event: x\nid: 1\ndata:{"usage":\ndata: {"prompt_tokens":7,\ndata: "completion_tokens":4}}\n\n',
    'data: {"unfinished": "\n\n',
    `data: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]\n\n`,
  ].join('');
  for (const size of [1, 3, 17, 1e9])
    expect(values(read(text, CHAT, true, size))).toEqual([{ prompt_tokens: 7, completion_tokens: 4 }, usage]);
});

test('each format reports it in its own way', () => {
  const of = (value: object | string, endpoint: Endpoint, stream: boolean) => {
    const { usage: counts, ...rest } = receipt(endpoint, 2);
    const signed = { ...rest, usage: endpoint === '/v1/messages' ? { ...counts, cached_tokens: 4 } : counts };
    return agreesWithReceipt(read(typeof value === 'string' ? value : JSON.stringify(value), endpoint, stream), signed);
  };
  const event = (...values: object[]): string => values.map((value) => `event: e\ndata: ${JSON.stringify(value)}\n\n`).join('');
  const message = { input_tokens: 3, cache_read_input_tokens: 4, output_tokens: 4, output_tokens_details: { thinking_tokens: 2 } };
  const response = { input_tokens: 7, output_tokens: 4, total_tokens: 11, output_tokens_details: { reasoning_tokens: 2 } };

  expect(of({ usage: message }, '/v1/messages', false)).toBe(true);
  expect(of({ usage: { ...message, input_tokens: 4 } }, '/v1/messages', false)).toBe(false);
  // Cached tokens have their own price, so a response must report all signed cached tokens or none.
  expect(of({ usage: { ...message, input_tokens: 7, cache_read_input_tokens: 0 } }, '/v1/messages', false)).toBe(true);
  expect(of({ usage: { ...message, input_tokens: 4, cache_read_input_tokens: 3 } }, '/v1/messages', false)).toBe(false);
  const started = { type: 'message_start', message: { usage: { input_tokens: 7, output_tokens: 1 } } };
  expect(of(event(started, { type: 'message_delta', usage: message }), '/v1/messages', true)).toBe(true);
  expect(of(event(started, { type: 'message_delta', usage: { ...message, output_tokens: 5 } }), '/v1/messages', true)).toBe(false);
  expect(of(event({ ...started, message: { usage: { input_tokens: 8 } } }), '/v1/messages', true)).toBe(false);

  expect(of({ usage: response }, '/v1/responses', false)).toBe(true);
  // At this endpoint, bodies with `messages` get a chat completion response.
  expect(of({ usage }, '/v1/responses', false)).toBe(true);
  expect(of(event({ usage: null }, { choices: [], usage }), '/v1/responses', true)).toBe(true);
  expect(of(event({ choices: [], usage: { ...usage, prompt_tokens: 8 } }), '/v1/responses', true)).toBe(false);
  expect(of(event({ response: { usage: null } }, { response: { output: [{ usage: 1 }], usage: response } }), '/v1/responses', true)).toBe(
    true,
  );
  const hidden = { ...response, output_tokens_details: { reasoning_tokens: 3 } };
  expect(of(event({ response: { usage: hidden } }), '/v1/responses', true)).toBe(false);

  expect(of({ input_tokens: 7 }, '/v1/messages/count_tokens', false)).toBe(true);
  expect(of({ input_tokens: 8 }, '/v1/messages/count_tokens', false)).toBe(false);
  expect(of({ usage: { prompt_tokens: 7, total_tokens: 11 } }, '/v1/embeddings', false)).toBe(true);
  expect(of({ usage: { prompt_tokens: 7, total_tokens: 7 } }, '/v1/embeddings', false)).toBe(false);
});

test('an answer that reports two usages agrees with no receipt', () => {
  const lie = JSON.stringify({ ...usage, prompt_tokens: 8, total_tokens: 12 });
  for (const text of [
    `{"usage":${JSON.stringify(usage)},"usage":${lie}}`,
    `{"usage":${lie},"usage":${JSON.stringify(usage)}}`,
    '{"usage":7}',
  ])
    expect(agreesWithReceipt(read(text), receipt(CHAT))).toBe(false);
  expect(agreesWithReceipt('unreadable', receipt(CHAT))).toBe(false);
});

test('an answer that reports usage without end is not kept', () => {
  const reader = new UsageReader(CHAT, true);
  const set = vi.spyOn(Map.prototype, 'set');
  try {
    for (let count = 0; count < 1000; count++) reader.push(utf8(`data: {"usage":{"prompt_tokens":${count}}}\n\n`));
    expect(set.mock.calls.length).toBeLessThan(16);
  } finally {
    set.mockRestore();
  }
  expect(reader.end()).toBe('unreadable');
});
