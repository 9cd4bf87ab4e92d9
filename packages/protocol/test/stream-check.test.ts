import { describe, expect, it } from 'vitest';
import { utf8 } from '../src/bytes.js';
import { StreamCheck } from '../src/stream-check.js';

const NONE: readonly string[] = [];
const MESSAGES = ['message_stop'];
const CHUNK = 'data: {"choices":[{"delta":{"content":"\\n\\ndata: [DONE]\\n\\n: no comment"}}]}\n\n';
const PING = 'event: ping\ndata: {"type":"ping"}\n\n';
const STOP = 'event: message_stop\ndata: {"type":"message_stop"}\n\n';

/** Result for the text in one piece, which must equal the result for single bytes. */
function check(text: string, terminalEvents = NONE): 'refused' | 'inside an event' | 'incomplete' | 'complete' {
  const bytes = utf8(text);
  const [whole, cut] = [new StreamCheck(terminalEvents), new StreamCheck(terminalEvents)];
  const isAccepted = whole.accepts(bytes);
  expect(bytes.every((byte) => cut.accepts(Uint8Array.of(byte)))).toBe(isAccepted);
  if (!isAccepted) return 'refused';
  expect([cut.isBetweenEvents, cut.isComplete]).toEqual([whole.isBetweenEvents, whole.isComplete]);
  return whole.isComplete ? 'complete' : whole.isBetweenEvents ? 'incomplete' : 'inside an event';
}

describe('a stream', () => {
  it('of whole events is complete', () => {
    expect(check('')).toBe('complete');
    expect(check(CHUNK)).toBe('complete');
    expect(check(CHUNK + PING + CHUNK)).toBe('complete');
    expect(check(PING + STOP, MESSAGES)).toBe('complete');
    expect(check('data: 1\n\ndata: "text"\n\ndata: }\n\n')).toBe('complete');
  });

  it('without the terminal event of its format is incomplete', () => {
    expect(check('', MESSAGES)).toBe('incomplete');
    expect(check(PING, MESSAGES)).toBe('incomplete');
    expect(check('event: message_stopped\ndata: {}\n\n', MESSAGES)).toBe('incomplete');
    expect(check('data: {"type":"message_stop"}\n\n', MESSAGES)).toBe('incomplete');
  });

  it('may end nowhere else', () => {
    const whole = CHUNK + PING;
    for (let end = 1; end < whole.length; end++) {
      expect(check(whole.slice(0, end)), `${end}`).toBe(end === CHUNK.length ? 'complete' : 'inside an event');
    }
    for (let end = 1; end < STOP.length; end++) expect(check(STOP.slice(0, end), MESSAGES)).toBe('inside an event');
  });

  it.each([
    ['a comment', ': x\n\n'],
    ['a comment behind an event', `${CHUNK}: x\n\n`],
    ['a comment inside an event', 'event: ping\n: x\ndata: {}\n\n'],
    ['a carriage return', 'data: {}\r\n\r\n'],
    ['the terminator of the coordinator', `${CHUNK}data: [DONE]\n\n`],
    ['the terminator without a space', 'data:[DONE]\n\n'],
    ['the terminator behind spaces', 'data:   [DONE]\n\n'],
    ['the terminator behind a tab', 'data: \t[DONE]\n\n'],
    ['the terminator behind a no-break space', 'data: \u00a0[DONE]\n\n'],
    ['data without content', 'data: \n\n'],
    ['the terminator as the second line of an event', 'data: {}\ndata: [DONE]\n\n'],
    ['the terminator behind a byte order mark', '\ufeffdata: [DONE]\n\n'],
    ['data in a field without a colon', 'data\n\n'],
    ['another field', 'id: 1\n\n'],
    ['a blank line too many', `${CHUNK}\n`],
    ['a name without data', 'event: ping\n\n'],
    ['two names', 'event: ping\nevent: ping\ndata: {}\n\n'],
    ['a name without an end', `event: ${'x'.repeat(65)}`],
    ['an error event', 'event: error\ndata: {"type":"error"}\n\n'],
    ['a failed response', 'event: response.failed\ndata: {}\n\n'],
  ])('is refused for %s', (_name, text) => {
    expect(check(text)).toBe('refused');
  });

  it('is refused for content after its terminal event', () => {
    expect(check(STOP + PING, MESSAGES)).toBe('refused');
    expect(check(STOP + STOP, MESSAGES)).toBe('refused');
    expect(check(STOP + PING, ['response.completed'])).toBe('incomplete');
  });
});
