import { promptTokenBound, SILENT_TOKENS } from '@inference/protocol';
import { expect, test } from 'vitest';
import { signedOutput, signedPrompt, usageOf } from '../../src/jobs/answer/signed-usage.js';

test('counts within what the bytes allow are signed as they are', () => {
  expect(signedPrompt({ promptTokens: 120, cachedTokens: 40 }, 400)).toEqual({ promptTokens: 120, cachedTokens: 40 });
  const counts = { completionTokens: 200, hiddenTokens: 150 };
  for (const thinks of [true, null]) expect(signedOutput(counts, { thinks, answerBytes: 0 })).toEqual(counts);
});

test('a template that repeats much, or a model that writes what leaves no bytes, is not taken for a lie', () => {
  expect(signedPrompt({ promptTokens: 5000, cachedTokens: 4000 }, 100)).toEqual({
    promptTokens: promptTokenBound(100),
    cachedTokens: promptTokenBound(100),
  });
  expect(signedOutput({ completionTokens: 8000, hiddenTokens: 100 }, { thinks: true, answerBytes: 300 })).toEqual({
    completionTokens: 300 + SILENT_TOKENS + 100,
    hiddenTokens: 100,
  });
});

test('thoughts of a model that has none are not counted', () => {
  expect(signedOutput({ completionTokens: 50, hiddenTokens: 30 }, { thinks: false, answerBytes: 300 })).toEqual({
    completionTokens: 20,
    hiddenTokens: 0,
  });
});

test('a usage adds up, and names cached tokens only where there are some', () => {
  expect(usageOf({ promptTokens: 7 }, 4)).toEqual({ prompt_tokens: 7, completion_tokens: 4, total_tokens: 11 });
  expect(usageOf({ promptTokens: 7, cachedTokens: 3 }, 4)).toMatchObject({ total_tokens: 11, cached_tokens: 3 });
});
