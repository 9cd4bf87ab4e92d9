import { describe, expect, it } from 'vitest';
import { OutputFilter, type OutputFilterOptions } from '../src/output/output-filter.js';
import type { TokenLogprob } from '../src/output-event.js';
import { Random } from './random.js';

const toolCalls = { callId: (index: number) => `call_${index}` };

function run(pieces: readonly string[], options: Partial<OutputFilterOptions> = {}) {
  const filter = new OutputFilter({ stop: [], toolCalls, ...options });
  const events = [...pieces.flatMap((piece) => filter.push(piece, 1)), ...filter.end()];
  const calls: { id: string; name: string; arguments: string }[] = [];
  /** Text with a marker for each call. */
  let text = '';
  for (const event of events) {
    if (event.type === 'text') text += event.text;
    if (event.type === 'tool_call_start') {
      expect(event.index).toBe(calls.length);
      calls.push({ id: event.id, name: event.name, arguments: '' });
      text += `[${event.index}]`;
    }
    if (event.type === 'tool_call_arguments') {
      const call = calls[event.index];
      expect(event.index).toBe(calls.length - 1);
      if (call !== undefined) call.arguments += event.delta;
    }
  }
  const { stopped, stopSequence, completedToolCalls: completed, startedToolCalls: started } = filter;
  expect(started).toBe(calls.length);
  return { text, calls: calls.map(({ name, arguments: json }) => [name, json]), stopped, stopSequence, completed };
}

const SPLITS: readonly [string, (text: string) => string[]][] = [
  ['in one piece', (text) => [text]],
  ['unit by unit', (text) => text.split('')],
  ['in threes', (text) => text.match(/[\s\S]{1,3}/g) ?? []],
];
const weather = '<tool_call>\n{"name": "weather", "arguments": {"city": "Genève", "days": [1, 2]}}\n</tool_call>';
const weatherCall = ['weather', '{"city": "Genève", "days": [1, 2]}'];

describe.each(SPLITS)('tool calls, %s', (_, split) => {
  it.each<[string, string, string, string[][]]>([
    ['one', weather, '[0]', [weatherCall]],
    ['after text', `Let me look.\n\n${weather}`, 'Let me look.[0]', [weatherCall]],
    ['two', `${weather}\n${weather}\n`, '[0][1]', [weatherCall, weatherCall]],
    ['before text', `${weather}\nDone. `, '[0]Done. ', [weatherCall]],
    ['after thinking', `<think>x</think>\n\n${weather}`, '[0]', [weatherCall]],
    ['arguments before the name', '<tool_call>{"arguments": {"a": 1}, "name": "f"}</tool_call>', '[0]', [['f', '{"a": 1}']]],
    ['parameters', '<tool_call>{"name":"f","parameters":{}}</tool_call>', '[0]', [['f', '{}']]],
    ['arguments in a string', '<tool_call>{"name":"f","arguments":"{\\"a\\":1}"}</tool_call>', '[0]', [['f', '{"a":1}']]],
    ['no arguments', '<tool_call>{"name":"f"}</tool_call>', '[0]', [['f', '{}']]],
    ['null for arguments', '<tool_call>{"name":"f","arguments":null}</tool_call>', '[0]', [['f', '{}']]],
    ['other members', '<tool_call>{"id": 3, "name": "f", "x": [{"name": "g"}], "arguments": {}}</tool_call>', '[0]', [['f', '{}']]],
    [
      'tags in a string',
      '<tool_call>{"name":"f","arguments":{"a":"</tool_call>\\"}"}}</tool_call>.',
      '[0].',
      [['f', '{"a":"</tool_call>\\"}"}']],
    ],
    ['line breaks in a string', '<tool_call>{"name":"f","arguments":{"a":"1\n2"}}</tool_call>', '[0]', [['f', '{"a":"1\\n2"}']]],
    [
      'escapes of no text',
      String.raw`<tool_call>{"name":"f\u0000","arguments":{"\u0000":"\ud83d\ude00 \ud83d\ud83d\uDE00 \ude00\ud83d\n \\u0000 \u00e9\ud800"}}`,
      '[0]',
      [['f\ufffd', String.raw`{"\ufffd":"\ud83d\ude00 \ufffd\ud83d\uDE00 \ufffd\ufffd\n \\u0000 \u00e9\ufffd"}`]],
    ],
    [
      'escapes of no text in arguments before the name',
      String.raw`<tool_call>{"arguments":{"a":"\u0000\ud83d\ud83d\uDE00"},"name":"f"}`,
      '[0]',
      [['f', String.raw`{"a":"\ufffd\ufffd\ud83d\uDE00"}`]],
    ],
    [
      'escapes of no text in arguments in a string',
      String.raw`<tool_call>{"name":"f","arguments":"{\"a\":\"\\u0000\\\\u0000\u0000\"}"}`,
      '[0]',
      [['f', String.raw`{"a":"\ufffd\\u0000`.concat('\ufffd"}')]],
    ],
    ['NUL in arguments', '<tool_call>{"name":"f","arguments":{"a":"\0"}}', '[0]', [['f', String.raw`{"a":"\ufffd"}`]]],
    ['cut off in an escape', String.raw`<tool_call>{"name":"f","arguments":{"a":"\ud83d\u00`, '[0]', [['f', String.raw`{"a":"\ud83d\u00`]]],
    ['no closing tag', '<tool_call>{"name":"f","arguments":{}}', '[0]', [['f', '{}']]],
    ['no closing tag, then text', '<tool_call>{"name":"f","arguments":{}} and', '[0]and', [['f', '{}']]],
    ['no closing tag, then a call', `<tool_call>{"name":"f"}${weather}`, '[0][1]', [['f', '{}'], weatherCall]],
    ['cut off in its arguments', '<tool_call>{"name":"f","arguments":{"a":"b', '[0]', [['f', '{"a":"b']]],
    ['cut off before its name', 'a <tool_call>{"na', 'a <tool_call>{"na', []],
    ['the tag alone', 'Write `<tool_call>` first.', 'Write `<tool_call>` first.', []],
    ['no JSON', 'a  <tool_call>get weather</tool_call>', 'a  <tool_call>get weather</tool_call>', []],
    ['no name', '<tool_call>{"arguments":{}}</tool_call> a', '<tool_call>{"arguments":{}}</tool_call> a', []],
    ['a number for a name', '<tool_call>{"name":3}</tool_call>', '<tool_call>{"name":3}</tool_call>', []],
    ['a list for arguments', '<tool_call>{"name":"f","arguments":[1]}', '<tool_call>{"name":"f","arguments":[1]}', []],
    ['no call, then a call', `<tool_call>x${weather}`, '<tool_call>x[0]', [weatherCall]],
    ['a tag cut off', 'a <tool_ca', 'a <tool_ca', []],
    ['white space at the end', 'a \n', 'a \n', []],
  ])('%s', (_case, output, text, calls) => {
    expect(run(split(output))).toMatchObject({ text, calls });
  });

  it('stop sequences end the text and not a call', () => {
    const seen = run(split(`a E${weather}b END c`), { stop: ['E', 'city', 'END'] });
    expect(seen).toMatchObject({ text: 'a ', calls: [], stopSequence: 'E' });
    expect(run(split(`a${weather}b city`), { stop: ['city'] })).toMatchObject({
      text: 'a[0]b ',
      calls: [weatherCall],
      stopSequence: 'city',
    });
    expect(run(split(`EN${weather}D`), { stop: ['END'] })).toMatchObject({ text: 'EN[0]D', stopSequence: null });
  });

  it('are text where no tools were given', () => {
    const filter = new OutputFilter({ stop: [] });
    const events = [...split(weather).flatMap((piece) => filter.push(piece, 1)), ...filter.end()];
    expect(events.map((event) => (event.type === 'text' ? event.text : '?')).join('')).toBe(weather);
  });
});

describe('a call', () => {
  it('streams its arguments as they come', () => {
    const filter = new OutputFilter({ stop: [], toolCalls });
    const pieces = ['<tool_call>{"name":', '"f","arguments":', '{"a":', '"b', '"}', '}</tool_call>'];
    expect(pieces.map((piece) => filter.push(piece, 1))).toEqual([
      [],
      [],
      [
        { type: 'tool_call_start', index: 0, id: 'call_0', name: 'f' },
        { type: 'tool_call_arguments', index: 0, delta: '{"a":' },
      ],
      [{ type: 'tool_call_arguments', index: 0, delta: '"b' }],
      [{ type: 'tool_call_arguments', index: 0, delta: '"}' }],
      [],
    ]);
    expect(filter.completedToolCalls).toBe(1);
  });

  it('that never gets a name does not wait without end', () => {
    const body = `<tool_call>{"arguments":{"a":"${'x'.repeat(70_000)}`;
    const filter = new OutputFilter({ stop: [], toolCalls });
    const shown = filter.push(body, 1).map((event) => (event.type === 'text' ? event.text : '?'));
    expect(shown.join('') === body).toBe(true);
  });
});

describe('properties', () => {
  const FRAGMENTS = [
    '<tool_call>',
    '</tool_call>',
    '{"name":"f"',
    ',"arguments":{',
    '"a":"b"',
    '}',
    '}',
    '{',
    '"',
    '\\',
    ',',
    ':',
    '\n',
    ' ',
    'a',
    '<',
    '<tool',
    '<think>',
    '</think>',
    '[',
    '1',
    weather,
    '😀',
  ];

  it('no way of cutting makes a difference', () => {
    for (let seed = 1; seed <= 3_000; seed++) {
      const random = new Random(seed);
      const text = random.text(FRAGMENTS, 20);
      const options = { stop: random.next() < 0.5 ? [] : [random.pick(['a', '\n', '<', '}', 'a<', ' ']), 'b"'] };
      expect({ seed, ...run(random.cut(text, random.pick([1, 2, 5])), options) }).toEqual({ seed, ...run([text], options) });
    }
  });

  it('calls that are written well are all found', () => {
    for (let seed = 1; seed <= 500; seed++) {
      const random = new Random(seed);
      const expected = Array.from({ length: random.below(4) + 1 }, () => [
        `${random.text(['f', 'g"', '\n', '😀', '\\'], 3)}n`,
        JSON.stringify({ a: random.text(FRAGMENTS.slice(0, 17), 9) }),
      ]);
      const text = expected.map(([name, json]) => `<tool_call>{"name":${JSON.stringify(name)},"arguments":${json}}</tool_call>`).join('\n');
      expect({ seed, calls: run(random.cut(text, 6)).calls }).toEqual({ seed, calls: expected });
    }
  });

  it('long outputs take linear time', () => {
    const before = process.cpuUsage();
    run([`<tool_call>{"name":"f","arguments":{"a":"${'x'.repeat(1_000_000)}`]);
    run(['<tool_call>{"a":"'.repeat(60_000)]);
    run(['<tool_call>'.repeat(60_000)]);
    run(`${' '.repeat(100_000)}a`.split(''));
    expect(process.cpuUsage(before).user).toBeLessThan(5_000_000);
  });
});

describe('calls that may only stand at the start', () => {
  const atStart = { toolCalls: { ...toolCalls, onlyAtStart: true } };

  it.each([[['{"a":"<tool_call>', '{\\"name\\":\\"f\\"}"}']], [['x<tool_call>{"name":"f"}</tool_call>']], [['<tool_', 'x']]])(
    'are text after text: %j',
    (pieces) => {
      const filter = new OutputFilter({ stop: [], ...atStart });
      const events = [...pieces.flatMap((piece) => filter.push(piece, 1)), ...filter.end()];
      expect(events.map((event) => (event.type === 'text' ? event.text : event.type)).join('')).toBe(pieces.join(''));
    },
  );

  it('are calls at the start, each of them', () => {
    const filter = new OutputFilter({ stop: [], ...atStart });
    const call = '<tool_call>\n{"name":"f","arguments":{}}\n</tool_call>';
    const events = [...filter.push(`\n${call}\n${call}`, 1), ...filter.end()];
    expect(events.filter(({ type }) => type === 'tool_call_start')).toHaveLength(2);
    expect(events.some(({ type }) => type === 'text')).toBe(false);
  });
});

describe('log probabilities', () => {
  const entry = (token: string): TokenLogprob => ({ token, logprob: -1, bytes: [...new TextEncoder().encode(token)], top_logprobs: [] });

  function tokens(pieces: readonly string[], options: Partial<OutputFilterOptions> = {}) {
    const filter = new OutputFilter({ stop: [], logprobs: true, ...options });
    const events = [...pieces.flatMap((piece) => filter.push(piece, 1, [entry(piece)])), ...filter.end()];
    return events.flatMap((event) => (event.type === 'text' ? [[event.text, event.logprobs?.map(({ token }) => token)] as const] : []));
  }

  it.each<[string, string[], unknown[]]>([
    [
      'go out with their text',
      ['a', 'b'],
      [
        ['a', ['a']],
        ['b', ['b']],
      ],
    ],
    [
      'wait with withheld text',
      ['a', 'E', 'N', 'x'],
      [
        ['a', ['a']],
        ['ENx', ['E', 'N', 'x']],
      ],
    ],
    ['of the stop sequence do not go out', ['a', 'E', 'ND'], [['a', ['a']]]],
    [
      'of thinking do not go out',
      ['<think>', 'a', '</think>', '\n', 'a', 'b'],
      [
        ['a', ['a']],
        ['b', ['b']],
      ],
    ],
    [
      'of half characters go out with the whole',
      ['a', '', '😀'],
      [
        ['a', ['a']],
        ['😀', ['', '😀']],
      ],
    ],
  ])('%s', (_case, pieces, seen) => {
    expect(tokens(pieces, { stop: ['END'] })).toEqual(seen);
  });

  it.each([
    ['a stop sequence', ['one twoE', 'ND'], 'one two', ['one two']],
    ['the end of thinking', ['<think>x</think>\n\nye', 's'], 'yes', ['ye', 's']],
  ])('of a token that %s cuts are cut down to what is shown', (_case, pieces, text, expected) => {
    const seen = tokens(pieces, { stop: ['END'] });
    expect(seen.map(([shown]) => shown).join('')).toBe(text);
    expect(seen.flatMap(([, own]) => own)).toEqual(expected);
  });

  it('make up the text that is shown, wherever tokens begin and end', () => {
    const parts = [
      'a',
      'bc',
      ' ',
      '\n',
      '<',
      '<th',
      'ink>',
      '<think>',
      '</think>',
      'x</thi',
      'nk>\n\n  y',
      'E',
      'EN',
      'D',
      'END!',
      '😀',
      '<tool_call>',
    ];
    const random = new Random(5);
    for (let round = 0; round < 500; round++) {
      const pieces = Array.from({ length: 1 + random.below(12) }, () => parts[random.below(parts.length)] as string);
      const seen = tokens(pieces, { stop: ['END'] });
      expect(seen.flatMap(([, own]) => own).join(''), JSON.stringify(pieces)).toBe(seen.map(([text]) => text).join(''));
    }
  });

  it('end with the first call', () => {
    expect(tokens(['a', ' ', '<tool_call>', '{"name":"f"}', '</tool_call>', 'b'], { toolCalls })).toEqual([
      ['a', ['a']],
      ['b', undefined],
    ]);
  });
});
