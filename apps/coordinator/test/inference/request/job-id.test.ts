import { JobIdSchema } from '@inference/protocol';
import { Check } from 'typebox/value';
import { expect, test } from 'vitest';
import { newJobId } from '../../../src/inference/request/job-request.js';

test('ids of jobs are UUIDs that begin with the time, and are told apart within a millisecond', () => {
  const now = 1_700_000_000_123;
  const ids = Array.from({ length: 1000 }, () => newJobId(now));
  expect(new Set(ids).size).toBe(ids.length);
  for (const id of ids) {
    expect(Check(JobIdSchema, id)).toBe(true);
    expect(id).toMatch(/^018bcfe5-687b-7[0-9a-f]{3}-[89ab]/);
  }
  expect(newJobId(now + 1) > newJobId(now)).toBe(true);
});
