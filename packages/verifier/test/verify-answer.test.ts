import { utf8 } from '@inference/protocol';
import { expect, it } from 'vitest';
import { verifyAnswer } from '../src/index.js';
import { keptAnswer } from './answer-cases.js';
import { NOW } from './published-record.js';

it('an answer verifies without its request, which then is not compared', () => {
  const { body, headers, request, feed } = keptAnswer();
  const answer = { body, headers, endpoint: null, nonce: null, feed };
  const names = (sent: string | null): string[] =>
    verifyAnswer({ ...answer, request: sent === null ? null : utf8(sent) }, NOW).checks.map(({ name }) => name);
  expect(verifyAnswer({ ...answer, request: null }, NOW)).toMatchObject({ verified: true, enclave: 'claimed' });
  expect(verifyAnswer({ ...answer, request: utf8('{}') }, NOW).verified).toBe(false);
  expect(names(request).filter((name) => !names(null).includes(name))).toEqual(['receipt_request', 'receipt_model']);
});
