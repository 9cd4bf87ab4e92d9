import { expect, it } from 'vitest';
import { deliveredUsage } from '../../../src/inference/settlement/settle-answer.js';

it.each([
  ['all of it', { delivered: 1000, signed: 1000 }, 30],
  ['half of it: the hidden tokens and half of the others', { delivered: 500, signed: 1000 }, 20],
  ['a single byte: the hidden tokens and one more', { delivered: 1, signed: 1000 }, 11],
  ['more than was signed (it cannot be)', { delivered: 2000, signed: 1000 }, 30],
])('of 20 visible and 10 hidden tokens a client that got %s pays', (_what, bytes, completionTokens) => {
  const usage = { prompt_tokens: 7, completion_tokens: 30, total_tokens: 37, cached_tokens: 3 };
  expect(deliveredUsage({ usage, hidden_tokens: 10 }, bytes)).toEqual({
    promptTokens: 7,
    cachedTokens: 3,
    completionTokens,
    hiddenTokens: 10,
  });
});
