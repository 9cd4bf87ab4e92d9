import { promptTokenBound, SILENT_TOKENS } from '@inference/protocol';
import { expect, test } from 'vitest';
import { signedOutput, signedPrompt, usageOf } from '../../src/jobs/answer/signed-usage.js';

test('counts within the byte bounds are signed unchanged', () => {
  expect(signedPrompt({ promptTokens: 120, cachedTokens: 40 }, 400)).toEqual({ promptTokens: 120, cachedTokens: 40 });
  const counts = { completionTokens: 200, hiddenTokens: 150 };
  for (const thinks of [true, null]) expect(signedOutput(counts, { thinks, answerBytes: 0 })).toEqual(counts);
});

test('honest excess of a repetitive template or of tokens without bytes is cut', () => {
  expect(signedPrompt({ promptTokens: 5000, cachedTokens: 4000 }, 100)).toEqual({
    promptTokens: promptTokenBound(100),
    cachedTokens: promptTokenBound(100),
  });
  expect(signedOutput({ completionTokens: 8000, hiddenTokens: 100 }, { thinks: true, answerBytes: 300 })).toEqual({
    completionTokens: 300 + SILENT_TOKENS + 100,
    hiddenTokens: 100,
  });
});

test('thoughts of a model without thoughts are not counted', () => {
  expect(signedOutput({ completionTokens: 50, hiddenTokens: 30 }, { thinks: false, answerBytes: 300 })).toEqual({
    completionTokens: 20,
    hiddenTokens: 0,
  });
});

test('a usage adds up, and contains cached tokens only if any', () => {
  expect(usageOf({ promptTokens: 7 }, 4)).toEqual({ prompt_tokens: 7, completion_tokens: 4, total_tokens: 11 });
  expect(usageOf({ promptTokens: 7, cachedTokens: 3 }, 4)).toMatchObject({ total_tokens: 11, cached_tokens: 3 });
});
