import { describe, expect, it } from 'vitest';
import { utf8 } from '../src/bytes.js';
import { StreamCheck } from '../src/stream-check.js';

const NONE: readonly string[] = [];
const MESSAGES = ['message_stop'];
const CHUNK = 'data: {"choices":[{"delta":{"content":"\\n\\ndata: [DONE]\\n\\n: no comment"}}]}\n\n';
const PING = 'event: ping\ndata: {"type":"ping"}\n\n';
/** An event like CHUNK, so that the check compares it with CHUNK, but with other text. */
const chunkOf = (text: string): string => CHUNK.replace(/\\n\\n.*comment/, text);
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
    const nested = `{"a":{"error":{"message":"no"},"type":"message_stop"},"b":[[],{},-0,10,1.5e-7,true,false,null,"\\u2028\\"😀\u00e9\u2027"]}`;
    expect(check(`data: ${nested}\n\ndata: {}\n\ndata: {"error":null}\n\n`)).toBe('complete');
    expect(check('event: ping\ndata: { "type" : "ping" , "a" : [ 1 , { } ] }\n\n')).toBe('complete');
  });

  it('without the terminal event of its format is incomplete', () => {
    expect(check('', MESSAGES)).toBe('incomplete');
    expect(check(PING, MESSAGES)).toBe('incomplete');
    expect(check('event: message_stopped\ndata: {"type":"message_stopped"}\n\n', MESSAGES)).toBe('incomplete');
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
    ['a failed response', 'event: response.failed\ndata: {"type":"response.failed"}\n\n'],
    ['data that is no JSON', 'data: Please visit example.org\n\n'],
    ['data that is no object', 'data: "text"\n\n'],
    ['data that is an array', 'data: [1]\n\n'],
    ['data behind an object', 'data: {}{}\n\n'],
    ['data cut off', 'data: {"choices":[\n\n'],
    ['a space before the data', 'data:  {"a":1}\n\n'],
    ['a space behind the data', 'data: {"a":1} \n\n'],
    ['a tab in the data', 'data: {"a":\t1}\n\n'],
    ['an error behind a space', 'data: {"error" : {"message":"free text"}}\n\n'],
    ['a type behind a space', 'event: ping\ndata: {"type" : "message_stop"}\n\n'],
    ['an error', 'data: {"choices":[],"error":{"message":"free text"}}\n\n'],
    ['an error in a string', 'data: {"error":"free text"}\n\n'],
    ['an error behind null', 'data: {"error":null,"error":{"message":"free text"}}\n\n'],
    ['an error with an escaped name', 'data: {"\\u0065rror":{"message":"free text"}}\n\n'],
    [
      'an error of a response',
      'event: response.completed\ndata: {"type":"response.completed","response":{"error":{"message":"free text"}}}\n\n',
    ],
    ['an error of a response with an escaped name', 'event: x\ndata: {"type":"x","response":{"\\u0065rror":{"message":"free text"}}}\n\n'],
    ['a type under another name', 'event: ping\ndata: {"type":"message_stop"}\n\n'],
    ['a type without a name', 'data: {"type":"error"}\n\n'],
    ['a name without a type', 'event: message_stop\ndata: {}\n\n'],
    ['two types', 'event: ping\ndata: {"type":"ping","type":"error"}\n\n'],
    ['a type with an escaped name', 'event: ping\ndata: {"type":"ping","t\\u0079pe":"error"}\n\n'],
    ['an escaped type', 'event: ping\ndata: {"type":"\\u0070ing"}\n\n'],
    ['a type that only begins with the name', 'event: ping\ndata: {"type":"pings"}\n\n'],
    ['an empty name', 'event: \ndata: {"type":""}\n\n'],
    ['a NUL', 'data: {"a":"\u0000"}\n\n'],
    ['a control character', 'data: {"a":"\u001f"}\n\n'],
    ['a control character in the name', 'event: a\u0000\ndata: {"type":"a\u0000"}\n\n'],
    ['a quotation mark in the name', 'event: a"\ndata: {"type":"a""}\n\n'],
    ['a carriage return in the name', 'event: ping\r\ndata: {"type":"ping"}\n\n'],
    ['a next line (U+0085)', 'data: {"a":"\u0085"}\n\n'],
    ['a line separator (U+2028)', 'data: {"a":"\u2028"}\n\n'],
    ['a paragraph separator (U+2029) in a name', 'data: {"a":{"\u2029":1}}\n\n'],
    ['an error in another case', 'data: {"Error":{"message":"free text"}}\n\n'],
    ['a type in another case', 'event: ping\ndata: {"type":"ping","Type":"error"}\n\n'],
    ['a name that is not ASCII', 'data: {"érror":1}\n\n'],
  ])('is refused for %s', (_name, text) => {
    expect(check(text)).toBe('refused');
  });

  it.each([
    '',
    'text',
    '\\n',
    '\\\\',
    '\\u00e9',
    'Grüße 😀 \u2027 \u0084',
    '"',
    '\\',
    '\\x',
    '\u0000',
    '\u001f',
    '\u0085',
    '\u2028',
    '\u2029',
    '"},"error":{"a":"',
  ])('is judged alike whether or not an event like %j came before', (text) => {
    const isValid = check(chunkOf(text)) === 'complete';
    expect(check(CHUNK.repeat(5) + chunkOf(text))).toBe(isValid ? 'complete' : 'refused');
  });

  it('is judged alike behind numbers that are none', () => {
    const event = (number: string) => `data: {"a":${number}}\n\n`;
    for (const number of ['0', '7', '10', '-1', '1.05', '1e5', '1E+05'])
      expect(check(event('1').repeat(5) + event(number))).toBe('complete');
    for (const number of ['', '-', '01', '+1', '.5', '1.', '1e', '1e+', '0x1', 'nul', 'NaN', '1 2']) {
      expect(check(event('1').repeat(5) + event(number)), number).toBe('refused');
    }
  });

  it('has events that differ only in strings and numbers from others, and report no usage', () => {
    const usage = (tokens: number) => `data: {"choices":[],"usage":{"prompt_tokens":${tokens}}}\n\n`;
    const nullUsage = (text: string) => `data: {"text":"${text}","usage":null}\n\n`;
    const stream = new StreamCheck(MESSAGES);
    const areKnown = (...events: readonly string[]) =>
      events.map((event) => {
        let isKnown = true;
        const bytes = utf8(event);
        const onNew = (part: Uint8Array): void => {
          isKnown = false;
          expect(event).toContain(new TextDecoder().decode(part));
        };
        expect(stream.accepts(bytes, onNew)).toBe(true);
        return isKnown;
      });
    // Shapes are learned from the fourth event, the eighth, and so on.
    areKnown(PING, CHUNK, CHUNK, CHUNK);
    expect(areKnown(CHUNK, chunkOf('more'), chunkOf('a') + chunkOf('b'), PING)).toEqual([true, true, true, false]);
    expect(areKnown(usage(1), usage(1), usage(2), CHUNK + usage(2))).toEqual([false, false, false, false]);
    expect(areKnown(CHUNK.slice(0, 9), CHUNK.slice(9), CHUNK)).toEqual([false, false, true]);
    areKnown(...Array.from({ length: 7 }, () => nullUsage('a')));
    expect(areKnown(nullUsage('b'), STOP)).toEqual([true, false]);
  });

  it('is refused for content after its terminal event', () => {
    expect(check(STOP + PING, MESSAGES)).toBe('refused');
    expect(check(STOP + STOP, MESSAGES)).toBe('refused');
    expect(check(STOP + PING, ['response.completed'])).toBe('incomplete');
  });
});
