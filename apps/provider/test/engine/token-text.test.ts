import { expect, test } from 'vitest';
import { tokenLogprob } from '../../src/engine/process/output/logprobs.js';
import { TextAssembler, Vocabulary } from '../../src/engine/process/output/token-text.js';

/** Byte-level BPE alphabet: printable bytes map to themselves, the others from U+0100 on. */
function byteLevel(bytes: Uint8Array): string {
  let shifted = 256;
  const alphabet = Array.from({ length: 256 }, (_, byte) =>
    (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174 ? byte : shifted++,
  );
  return String.fromCodePoint(...[...bytes].map((byte) => alphabet[byte] as number));
}

const everyByte = Array.from({ length: 256 }, (_, byte) => byteLevel(Uint8Array.of(byte)));
const extra = ['<|im_end|>', '<think>', '[UNUSED]'];
const vocabulary = new Vocabulary(
  { tokens: [...everyByte, ...extra], types: [...everyByte.map(() => 1), 3, 3, 5], kind: 'gpt2', detokenize: () => '?' },
  ['<think>'],
);

function assemble(tokens: readonly number[]): string[] {
  const text = new TextAssembler(vocabulary);
  return [...tokens.map((token) => text.push(token as never)), text.end()];
}

test('a character split over tokens appears whole, with its last byte', () => {
  expect(assemble([...Buffer.from('a€😀')])).toEqual(['a', '', '', '€', '', '', '', '😀', '']);
});

test('any text cut into bytes is restored', () => {
  const text = 'Grüße, 世界! \u0001\u001b\u007f\n\t 👩‍👩‍👧 é \ufeff end';
  expect(assemble([...Buffer.from(text)]).join('')).toBe(text);
});

test('NUL becomes U+FFFD in text and log probabilities, as a request with NUL is refused; grammars read the byte', () => {
  expect(assemble([0x61, 0x00, 0x62])).toEqual(['a', '\ufffd', 'b', '']);
  expect(assemble([0xe2, 0x00]).join('')).toBe('\ufffd\ufffd');
  const pieces = new Vocabulary({ tokens: ['<0x00>', 'a\0'], types: [6, 1], kind: 'llama', detokenize: () => '?' }, []);
  for (const [source, token, text, piece] of [
    [vocabulary, 0, '\ufffd', [0]],
    [pieces, 0, '\ufffd', [0]],
    [pieces, 1, 'a\ufffd', [0x61, 0]],
  ] as const) {
    expect(new TextAssembler(source).push(token as never)).toBe(text);
    const bytes = [...Buffer.from(text)];
    const { top_logprobs, ...chosen } = tokenLogprob(source, token as never, text, new Map([[token as never, -1]]), 1);
    expect([chosen, ...top_logprobs]).toEqual([
      { token: text, logprob: -1, bytes },
      { token: text, logprob: -1, bytes },
    ]);
    expect([...source.pieceBytes(token as never)]).toEqual(piece);
  }
});

test('bytes that never become a character end as U+FFFD', () => {
  expect(assemble([0xe2, 0x82]).join('')).toBe('\ufffd');
  expect(assemble([0xe2, 0x41]).join('')).toBe('\ufffdA');
  expect(assemble([0xff, 0x42]).join('')).toBe('\ufffdB');
});

test('control and unused tokens print nothing, think tags do', () => {
  expect(assemble([256, 257, 258]).join('|')).toBe('|<think>||');
});

test('each token of a multi-token think tag prints its part', () => {
  const tokens = ['<|channel|>', 'analysis', '<|message|>', 'hm', '<|end|>', '<|return|>'];
  const harmony = new Vocabulary({ tokens, types: [3, 1, 3, 1, 3, 3], kind: 'gpt2', detokenize: () => '?' }, [
    '<|channel|>analysis<|message|>',
    '<|end|><|start|>assistant',
  ]);
  const text = new TextAssembler(harmony);
  expect(tokens.map((_, token) => text.push(token as never)).join('')).toBe('<|channel|>analysis<|message|>hm<|end|>');
});

test('a control token inside a split character does not break it', () => {
  expect(assemble([0xe2, 256, 0x82, 0xac]).join('')).toBe('€');
});

test('SentencePiece vocabularies preserve leading spaces and raw bytes', () => {
  const pieces = new Vocabulary(
    { tokens: ['▁Hello', '<0xE2>', '<0x82>', '<0xAC>', '▁you'], types: [1, 6, 6, 6, 1], kind: 'llama', detokenize: () => '?' },
    [],
  );
  const text = new TextAssembler(pieces);
  expect([0, 1, 2, 3, 4].map((token) => text.push(token as never))).toEqual([' Hello', '', '', '€', ' you']);
});
