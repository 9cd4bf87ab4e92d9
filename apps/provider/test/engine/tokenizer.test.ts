/** Long texts become tokens in pieces: the same tokens, and no text ends the engine. */
import { join } from 'node:path';
import type { Token } from 'node-llama-cpp';
import { describe, expect, test } from 'vitest';
import { runProgram } from '../../../../test/support/program.js';
import { seededRandom } from '../../../../test/support/seeded-random.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { Engine } from '../../src/engine/engine.js';
import { inPieces, MAX_CHARACTERS } from '../../src/engine/process/prompt/tokenizer.js';
import { ask } from '../demo-model.js';

const directory = temporaryDirectory('tokenizer');

/** Words by GPT-2's splitting rule, each as one token: its start. */
const WORDS = /<\|im_end\|>|'(?:s|t|re|ve|m|ll|d)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+/gu;

describe('a text in pieces', () => {
  const given: string[] = [];
  const words = (text: string): string[] => {
    given.push(text);
    return text.match(WORDS) ?? [];
  };
  const inWords = inPieces((text) => words(text) as unknown as Token[], ['<|im_end|>', '<|end of text|>']) as unknown as (
    text: string,
    special: boolean,
  ) => string[];

  const random = seededRandom(7);
  const some = (parts: readonly string[], count: number): string =>
    Array.from({ length: count }, () => parts[Math.floor(random() * parts.length)]).join('');

  test.each<[string, string]>([
    ['short', 'Hello, world. '.repeat(100)],
    ['prose', some(['Hello', ' world', " it's", ', ', ' naïve', ' 42', '.\n\n', ' and', ' a', '  '], 20_000)],
    ['program', some(['  if (x', ' == ', '10)', ' {\n', '    return', ' value', ';\n', '}\n', '\t'], 20_000)],
    ['other scripts', some(['привет', ' мир', ' 日本語', '。', ' ελλάδα', ' שלום', '\n'], 20_000)],
  ])('has the same words: %s', (_what, text) => {
    given.length = 0;
    expect(inWords(text, true)).toEqual(text.match(WORDS));
    expect(Math.max(...given.map(({ length }) => length))).toBeLessThanOrEqual(MAX_CHARACTERS);
    expect(given.join('')).toBe(text);
  });

  test('is cut, but never inside a character or control text', () => {
    for (const filler of ['a', ' ', '/\n', '𝒳', '漢', '<|im_end|>', 'a<|end of text|>']) {
      given.length = 0;
      const text = `x${filler.repeat(40_000)}`;
      expect(inWords(text, true).join('')).toBe(text);
      expect(given.join('')).toBe(text);
      expect(given.length).toBeGreaterThan(4);
      for (const piece of given) {
        expect(piece.length).toBeGreaterThan(0);
        expect(piece.length).toBeLessThanOrEqual(MAX_CHARACTERS);
        expect(Buffer.from(piece).toString()).toBe(piece);
        if (filler.includes('<|')) expect(piece).toMatch(/(?:\|>|a|^x)$/);
      }
    }
  });
});

// One vocabulary with a recursive word matcher, others with their own code.
test.each(['gpt-4o', 'deepseek-v3', 'tekken', 'qwen2'])('a word of 200,000 letters does not end an engine (%s)', async (pre) => {
  const modelPath = join(directory, `${pre}.gguf`);
  await runProgram('scripts/make-model.ts', ['--out', modelPath, '--context', '128k', '--pre', pre]);
  const engine = await Engine.start({ settings: { modelPath, slots: 1, contextSize: 131_072, gpu: 'none' } });
  try {
    const { pid } = engine;
    for (const character of ['a', ' ', '!', '1', '漢', '/\n']) {
      // Counted only; reading would take longer than needed here.
      const counting = engine.generate(ask(character.repeat(200_000 / character.length), 0));
      for await (const _ of counting);
      expect(counting.outcome().reason).toBe('stop');
    }
    // A grammar is completed with the shortest text, whose tokens are counted, too.
    const word = { classes: [[97, 97]], rules: [[new Array<number>(200_000).fill(~0)]] };
    const forced = engine.generate({ ...ask('Hi', 3), grammar: word });
    for await (const _ of forced);
    expect(forced.outcome().reason).toBe('length');
    expect(engine.pid).toBe(pid);
  } finally {
    await engine.close();
  }
});
