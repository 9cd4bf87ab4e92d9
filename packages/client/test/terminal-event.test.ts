import { utf8 } from '@inference/protocol';
import { describe, expect, it } from 'vitest';
import { TerminalEventGate } from '../src/answer/terminal-event.js';

const RESPONSES = ['response.completed', 'response.incomplete'];
const DELTA = 'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"response.completed"}\n\n';

/** Text that the gate passes on before and after verification, pushed in pieces of every size. */
function pass(text: string, terminalEvents = RESPONSES): { before: string; after: string } {
  const results = [1, 7, text.length].map((size) => {
    const gate = new TerminalEventGate(terminalEvents);
    const bytes = utf8(text);
    let before = '';
    for (let at = 0; at < bytes.length; at += size) before += Buffer.from(gate.push(bytes.subarray(at, at + size))).toString();
    return { before, after: Buffer.from(gate.release()).toString() };
  });
  expect(results).toEqual(results.map(() => results[0]));
  return results[0] as { before: string; after: string };
}

describe('before verification', () => {
  it.each([
    ['named', 'event: response.completed\ndata: {"type":"response.completed"}\n\n'],
    ['of a name with another type', 'event: response.incomplete\ndata: {"type":"response.output_text.delta"}\n\n'],
    ['of a type with another name', 'event: ping\ndata: {"type":"response.completed"}\n\n'],
    ['of a type without a name', 'data: {"type":"response.completed"}\n\n'],
    ['of a repeated type', 'event: ping\ndata: {"type":"ping","type":"response.completed"}\n\n'],
    ['of an escaped type', 'event: ping\ndata: {"t\\u0079pe":"response\\u002ecompleted"}\n\n'],
    ['of a name behind two spaces', 'event:  response.completed\ndata: {}\n\n'],
  ])('a terminal event %s is withheld, with all that follows', (_what, event) => {
    expect(pass(DELTA + event + DELTA)).toEqual({ before: DELTA, after: event + DELTA });
  });

  it.each([
    ['an event that mentions a terminal one', DELTA],
    ['data that is no JSON', 'event: ping\ndata: {response.completed\n\n'],
    ['a nested type', 'event: ping\ndata: {"type":"ping","inner":{"type":"response.completed"}}\n\n'],
    ["another format's terminal event", 'event: message_stop\ndata: {"type":"message_stop"}\n\n'],
  ])('%s passes', (_what, event) => {
    expect(pass(event)).toEqual({ before: event, after: '' });
  });

  it('whole events pass in formats without terminal events', () => {
    const chunk = 'data: {"type":"response.completed"}\n\n';
    expect(pass(`${chunk}data: {`, [])).toEqual({ before: chunk, after: 'data: {' });
  });
});
