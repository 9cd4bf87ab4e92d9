/** The division of an output into pieces does not change a response. Streams and unstreamed responses have equal content. */
import { StreamCheck } from '@inference/protocol';
import { describe, expect, it } from 'vitest';
import { formatFor, type TextEndpoint } from '../src/formats.js';
import { OutputFilter } from '../src/output/output-filter.js';
import type { OutputEvent } from '../src/output-event.js';
import { eventsOf, responseMetadataOf } from './gateway.js';
import { calls, cutInThinking, empty, stopped, text } from './outputs.js';
import { Random } from './random.js';

const FRAGMENTS = [
  '<think>',
  '</think>',
  'Hm',
  'Well, ',
  '\n',
  ' ',
  '😀',
  'é',
  'END',
  'E',
  '<tool_call>{"name":"f","arguments":{"a":"😀"}}</tool_call>',
  '<tool_call>',
  '<',
  '\u2028',
];
const BODIES: readonly [TextEndpoint, object][] = [
  ['/v1/chat/completions', { messages: [{ role: 'user', content: 'a' }], include_reasoning: true }],
  ['/v1/completions', { prompt: 'a' }],
  ['/v1/responses', { input: 'a' }],
  ['/v1/messages', { messages: [{ role: 'user', content: 'a' }], max_tokens: 9, thinking: { type: 'adaptive' } }],
];

function eventsFor(pieces: readonly string[]): OutputEvent[] {
  const filter = new OutputFilter({ stop: ['END'], toolCalls: { callId: (index) => `call_${index}` } });
  const events = [...pieces.flatMap((piece) => filter.push(piece, 1)), ...filter.end()];
  const { stopSequence, startedToolCalls } = filter;
  return [
    { type: 'start', promptTokens: 3 },
    ...events,
    {
      type: 'finish',
      reason: startedToolCalls > 0 ? 'tool_calls' : 'stop',
      ...(stopSequence === null ? {} : { stopSequence }),
      usage: { prompt_tokens: 3, completion_tokens: 9, total_tokens: 12 },
      hiddenTokens: 0,
    },
  ];
}

/** Response bytes without streaming, and with streaming after joining adjacent deltas. */
function answers(endpoint: TextEndpoint, body: object, events: readonly OutputEvent[]) {
  const parsed = formatFor(endpoint).parse(new TextEncoder().encode(JSON.stringify({ model: 'm', ...body })));
  const responseMetadata = responseMetadataOf(parsed);
  const plain = parsed.answer.plain(responseMetadata);
  plain.add(...events);
  const stream = parsed.answer.stream(responseMetadata);
  const rendered = events.map((event) => stream.render(event)).join('');
  return { plain: plain.body(), stream: joined(rendered) };
}

/** Members of events that contain pieces of text. */
const PIECES = new Set(['content', 'reasoning_content', 'arguments', 'text', 'thinking', 'partial_json', 'delta']);

function joined(stream: string): unknown[] {
  const events: { shape: string; pieces: Map<string, string> }[] = [];
  for (const { data } of eventsOf(stream)) {
    // By member: chunks of legacy completions have their text twice.
    const pieces = new Map<string, string>();
    const shape = JSON.stringify(JSON.parse(data), (key, value: unknown) => {
      if (key === 'sequence_number') return undefined;
      if (typeof value !== 'string' || !PIECES.has(key)) return value;
      pieces.set(key, (pieces.get(key) ?? '') + value);
      return '';
    });
    const last = events.at(-1);
    if (last?.shape !== shape) events.push({ shape, pieces });
    else for (const [key, more] of pieces) last.pieces.set(key, (last.pieces.get(key) ?? '') + more);
  }
  return events;
}

describe.each(BODIES)('%s', (endpoint, body) => {
  it('says the same however the output was cut', () => {
    for (let seed = 1; seed <= 150; seed++) {
      const random = new Random(seed);
      const text = random.text(FRAGMENTS, 14);
      const whole = answers(endpoint, body, eventsFor([text]));
      const cut = answers(endpoint, body, eventsFor(random.cut(text, random.pick([1, 3, 9]))));
      expect({ seed, text, ...cut }).toEqual({ seed, text, ...whole });
    }
  });

  it('gives the same bytes however the events were handed over', () => {
    const events = eventsFor(['Well, ', '<think>Hm</think>', 'so', '<tool_call>{"name":"f"}</tool_call>']);
    const { answer } = formatFor(endpoint).parse(new TextEncoder().encode(JSON.stringify({ model: 'm', ...body })));
    const responseMetadata = { responseId: `${answer.idPrefix}1`, created: 1, model: 'm' };
    const [one, other] = [answer.stream(responseMetadata), answer.stream(responseMetadata)];
    expect(events.map((event) => one.render(event)).join('')).toBe(other.render(...events));
  });

  it('passes the check of streams, complete or cut off between two events of the output', () => {
    const { answer } = formatFor(endpoint).parse(new TextEncoder().encode(JSON.stringify({ model: 'm', ...body })));
    for (const output of Object.values({ text, calls, cutInThinking, stopped, empty })) {
      const stream = answer.stream({ responseId: `${answer.idPrefix}1`, created: 1, model: 'm' });
      const check = new StreamCheck(answer.terminalEvents);
      for (const event of output) {
        expect(check.accepts(new TextEncoder().encode(stream.render(event)))).toBe(true);
        expect(check.isBetweenEvents).toBe(true);
        expect(check.isComplete).toBe(answer.terminalEvents.length === 0 || event.type === 'finish');
      }
    }
  });
});
