import { JobIdSchema } from '@inference/protocol';
import { Check } from 'typebox/value';
import { expect, test } from 'vitest';
import { findJobId, jobIdOfRequest, newJobId, newRequestId } from '../../../src/inference/request/job-id.js';

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

test('the id of an HTTP request names its job', () => {
  const requestId = newRequestId(1_700_000_000_123);
  expect(requestId).toMatch(/^req_018bcfe5687b7[0-9a-f]{19}$/);
  expect(jobIdOfRequest(requestId).replaceAll('-', '')).toBe(requestId.slice('req_'.length));
  expect(() => jobIdOfRequest('req_1')).toThrow();
});

test('job ids are found in every id that clients know', () => {
  const jobId = newJobId(1_700_000_000_123);
  const hex = jobId.replaceAll('-', '');
  for (const text of [jobId, hex, `req_${hex}`, `chatcmpl-${hex}`, `msg_${hex}`, ` RESP_${hex.toUpperCase()} `]) {
    expect(findJobId(text)).toBe(jobId);
  }
  for (const text of ['', 'req_', hex.slice(1), `${hex}0`, `req__${hex}`, `req_${hex} or 1`]) expect(findJobId(text)).toBeNull();
});
