import { describe, expect, it } from 'vitest';
import { OutputFilter, type OutputFilterOptions } from '../src/output/output-filter.js';
import { Random } from './random.js';
import { referenceOutput } from './reference-output.js';

function run(pieces: readonly string[], options: Partial<OutputFilterOptions> = {}) {
  const filter = new OutputFilter({ stop: [], ...options });
  const events = pieces.flatMap((piece) => filter.push(piece, 1));
  events.push(...filter.end());
  const join = (type: 'text' | 'reasoning') => events.flatMap((event) => (event.type === type ? [event.text] : [])).join('');
  return { visible: join('text'), reasoning: join('reasoning'), stopped: filter.stopped, hiddenTokens: filter.hiddenTokens };
}

const SPLITS: readonly [string, (text: string) => string[]][] = [
  ['in one piece', (text) => [text]],
  ['unit by unit', (text) => text.split('')],
  ['in threes', (text) => text.match(/[\s\S]{1,3}/g) ?? []],
];

describe.each(SPLITS)('think sections, %s', (_, split) => {
  it.each([
    ['no section', 'plain answer', 'plain answer'],
    ['at the very start', '<think>plan</think>answer', 'answer'],
    ['white space after the first section', '<think>plan</think>\n\n  answer', 'answer'],
    ['white space before the first section', '\n<think>plan</think>\n\nanswer', 'answer'],
    ['white space without a section', '\n  answer', '\n  answer'],
    ['nothing but white space', ' \n ', ' \n '],
    ['as much white space as is waited for', `${' '.repeat(16)}<think>x</think>a`, 'a'],
    ['more white space than is waited for', `${' '.repeat(17)}<think>x</think>a`, `${' '.repeat(17)}a`],
    ['in the middle of a line', 'one <think>x</think>two', 'one two'],
    ['between paragraphs', 'one\n\n<think>x</think>\n\ntwo', 'one\n\ntwo'],
    ['indentation after a section', 'one\n<think>x</think>\n  two', 'one\n  two'],
    ['a paragraph break after a section in a line', 'one<think>x</think>\n\ntwo', 'one\n\ntwo'],
    ['several', '<think>a</think>one<think>b</think> two<think>c</think>', 'one two'],
    ['several at the start', '<think>a</think>\n<think>b</think>\nanswer', 'answer'],
    ['nested', '<think>a<think>b</think>c</think>answer', 'answer'],
    ['unclosed', 'answer<think>a', 'answer'],
    ['nested, one unclosed', 'answer<think>a<think>b</think>c', 'answer'],
    ['empty', '<think></think>answer', 'answer'],
    ['a closing tag alone', 'one</think>two</think>', 'onetwo'],
    ['a closing tag at the start', '</think>\n\nanswer', 'answer'],
    ['in a code fence', '```html\n<think>x</think>\n<b>\n```', '```html\n<b>\n```'],
    ['in inline code', 'write `<think>` now', 'write `'],
    ['tags that form where a section was', '<thi<think>x</think>nk>a</thi</think>nk>>b', '<thinka</thinkb'],
    ['a tag cut off at the end', 'answer <thi', 'answer <thi'],
    ['a false beginning', '<<thin<think>x</think>answer', '<<thinanswer'],
    ['other tags', '<thinking>a</thinking> <Think>', '<thinking>a</thinking> <Think>'],
    ['nothing', '', ''],
  ])('%s', (_case, text, visible) => {
    expect(run(split(text)).visible).toBe(visible);
  });

  it('begins inside a section when the prompt opened it', () => {
    const seen = run(split('plan</think>\n\nanswer'), { startsInsideThinking: true });
    expect(seen).toMatchObject({ visible: 'answer', reasoning: 'plan' });
    expect(run(split('plan'), { startsInsideThinking: true }).visible).toBe('');
  });

  it('takes the tags that a model uses', () => {
    const thinkTags = { open: '[THINK]', close: '[/THINK]' };
    expect(run(split('[THINK]a<think>[/THINK]<think>'), { thinkTags })).toMatchObject({ visible: '<think>', reasoning: 'a<think>' });
  });

  it('tells reasoning apart, without tags', () => {
    expect(run(split('<think>a<think>b</think>c</think>one<think>d')).reasoning).toBe('abcd');
  });
});

describe.each(SPLITS)('stop sequences, %s', (_, split) => {
  it.each([
    ['is left out', 'one END two', ['END'], 'one ', true],
    ['at the very start', 'END', ['END'], '', true],
    ['does not occur', 'one EN', ['END'], 'one EN', false],
    ['begins again within itself', 'aaab', ['aab'], 'a', true],
    ['the first to be complete', 'one two', ['two', 'one'], '', true],
    ['the first to be complete, though another began before it', 'xabc', ['abc', 'b'], 'xa', true],
    ['the longest of those complete together', 'xabc', ['bc', 'abc', 'c'], 'x', true],
    ['only in visible text', '<think>END</think>one', ['END'], 'one', false],
    ['across a section', 'one E<think>x</think>ND two', ['END'], 'one ', true],
    ['never a tag', '<think>a</think>one', ['<think>'], 'one', false],
    ['not in dropped white space', '<think>a</think>\n\none\n', ['\n'], 'one', true],
    ['beyond the basic plane', 'one 😁 two 😀 three', ['😀'], 'one 😁 two ', true],
  ])('%s', (_case, text, stop, visible, stopped) => {
    expect(run(split(text), { stop })).toMatchObject({ visible, stopped });
  });
});

describe('pieces', () => {
  it('are released as soon as they can be nothing else', () => {
    const filter = new OutputFilter({ stop: ['END'] });
    const shown = ['a', ' <', 'th', 'x', 'E', 'N', 'X', '<think>', 'y', '</think>', 'z'].map((piece) =>
      filter.push(piece, 1).flatMap((event) => (event.type === 'text' ? [event.text] : [])),
    );
    expect(shown).toEqual([['a'], [' '], [], ['<thx'], [], [], ['ENX'], [], [], [], ['z']]);
  });

  it('after a stop sequence are dropped', () => {
    const filter = new OutputFilter({ stop: ['.'] });
    expect(filter.push('one. two<think>x', 4)).toEqual([{ type: 'text', text: 'one' }]);
    expect(filter.stopped).toBe(true);
    expect(filter.push('three', 1)).toEqual([]);
    expect(filter.end()).toEqual([]);
  });

  it('that end in half of a character wait for the other half', () => {
    const filter = new OutputFilter({ stop: [] });
    expect(filter.push('a\ud83d', 1)).toEqual([{ type: 'text', text: 'a' }]);
    expect(filter.push('\ude00', 1)).toEqual([{ type: 'text', text: '😀' }]);
    expect(filter.push('\ud83d', 1)).toEqual([]);
    expect(filter.push('b\ude00c', 1)).toEqual([{ type: 'text', text: '\ufffdb\ufffdc' }]);
    expect(filter.push('\ud83d', 1)).toEqual([]);
    expect(filter.end()).toEqual([{ type: 'text', text: '\ufffd' }]);
  });
});

describe('hidden tokens', () => {
  it.each<[string, readonly [string, number][], number, boolean?]>([
    [
      'none without a section',
      [
        ['one', 1],
        [' two', 1],
      ],
      0,
    ],
    [
      'those of sections and tags',
      [
        ['<think>', 1],
        ['a b', 2],
        ['</think>', 1],
        ['\n\n', 1],
        ['one', 1],
      ],
      4,
    ],
    [
      'a tag over several pieces',
      [
        ['<', 1],
        ['th', 1],
        ['ink>', 1],
        ['a', 1],
        ['</', 1],
        ['think>', 1],
        ['b', 1],
      ],
      6,
    ],
    [
      'a false beginning',
      [
        ['<', 1],
        ['th', 1],
        ['at', 1],
      ],
      0,
    ],
    [
      'a piece mostly visible',
      [
        ['answer <think', 1],
        ['>', 1],
      ],
      1,
    ],
    ['a piece mostly hidden', [['a <think>', 1]], 1],
    ['in proportion where a piece has several', [['<think></think>fifteen letters!', 10]], 5],
    [
      'with the piece that brings the text',
      [
        ['<think>', 1],
        ['', 1],
        ['', 1],
        ['é', 1],
        ['</think>', 1],
        ['', 1],
        ['ü', 1],
      ],
      5,
    ],
    [
      'without text at the end of an open section',
      [
        ['<think>', 1],
        ['', 2],
      ],
      3,
    ],
    [
      'without text at the end of visible text',
      [
        ['one', 1],
        ['', 2],
      ],
      0,
    ],
    [
      'a section never closed',
      [
        ['one', 1],
        ['<think>', 1],
        ['two', 1],
        ['</thi', 1],
      ],
      3,
    ],
    [
      'from the start',
      [
        ['plan', 1],
        ['</think>', 1],
        ['one', 1],
      ],
      2,
      true,
    ],
  ])('%s', (_case, pieces, hidden, startsInsideThinking = false) => {
    const filter = new OutputFilter({ stop: [], startsInsideThinking });
    for (const [piece, tokens] of pieces) filter.push(piece, tokens);
    filter.end();
    expect(filter.hiddenTokens).toBe(hidden);
  });
});

describe('properties', () => {
  const FRAGMENTS = [
    '<think>',
    '</think>',
    '<',
    '/',
    'think>',
    '<th',
    '</t',
    '\n',
    '\n\n',
    ' ',
    '\t',
    'a',
    'b',
    'ab',
    'aab',
    '.',
    '😀',
    '\ud83d',
    '\ude00',
    'é',
  ];
  const STOPS = ['a', 'ab', 'aab', 'aa', 'ba', '\n', '\n\n', '. ', '<', '<th', 'think', '😀', '😀a', 'a\na', 'abab', ' '];

  it('every way of cutting shows the same text as the uncut text', () => {
    for (let seed = 1; seed <= 30_000; seed++) {
      const random = new Random(seed);
      const text = random.text(FRAGMENTS, 24);
      const stop = random.next() < 0.4 ? [] : Array.from({ length: random.below(4) + 1 }, () => random.pick(STOPS));
      const options: OutputFilterOptions = { stop, startsInsideThinking: random.next() < 0.2 };
      const pieces = random.cut(text, random.pick([1, 2, 4, 12]));
      const seen = run(pieces, options);
      const { visible, stopped } = seen;
      expect({ seed, text, stop, visible, stopped }).toEqual({ seed, text, stop, ...referenceOutput(text, options) });
      expect(seen.hiddenTokens).toBeLessThanOrEqual(pieces.length);
    }
  });

  it('reasoning does not depend on the cut either', () => {
    for (let seed = 1; seed <= 5_000; seed++) {
      const random = new Random(seed);
      const text = random.text(FRAGMENTS, 24);
      const options = { stop: random.next() < 0.5 ? [] : [random.pick(STOPS)] };
      const whole = run([text], options);
      expect({ seed, reasoning: run(random.cut(text, 3), options).reasoning }).toEqual({ seed, reasoning: whole.reasoning });
    }
  });

  it('no tag is ever visible', () => {
    for (let seed = 1; seed <= 5_000; seed++) {
      const random = new Random(seed);
      const text = random.text(['<think>', '</think>', '<think', '</think', '>', 'x', '\n'], 20);
      expect(run(random.cut(text, 5)).visible).not.toMatch(/<\/?think>/);
    }
  });

  it('long outputs take linear time', () => {
    const stop = [`${'a'.repeat(1000)}b`, `${'ab'.repeat(500)}c`, '\n\n', '<|end|>'];
    const before = process.cpuUsage();
    const filter = new OutputFilter({ stop });
    for (let i = 0; i < 100_000; i++) filter.push('aaaa', 1);
    filter.end();
    expect(run(['<think>'.repeat(300_000)]).visible).toBe('');
    expect(run([`${'</think>'.repeat(300_000)}a`]).visible).toBe('a');
    expect(run([' \n'.repeat(500_000)]).visible.length).toBe(1_000_000);
    expect(process.cpuUsage(before).user).toBeLessThan(5_000_000);
  });
});
