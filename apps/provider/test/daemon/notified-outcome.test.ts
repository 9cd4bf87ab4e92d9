/** Which ends of jobs count as failures of this machine in notifications. */
import type { JobFailureCode, JobId } from '@inference/protocol';
import { expect, it } from 'vitest';
import { notifiedOutcome } from '../../src/daemon/status.js';

const outcomeOf = (code: JobFailureCode) =>
  notifiedOutcome({ jobId: 'job' as JobId, milliseconds: 1, end: { kind: 'failed', failure: { code } } });

it("counts this machine's own failures, not those of clients, of a full machine and of cancelled requests", () => {
  for (const code of ['engine_failed', 'signing_failed', 'internal', 'expired'] as const) expect(outcomeOf(code)).toBe('job_failed');
  for (const code of ['invalid_request', 'context_length_exceeded', 'busy', 'away', 'draining', 'cancelled'] as const) {
    expect(outcomeOf(code)).toBeNull();
  }
  expect(notifiedOutcome({ jobId: 'job' as JobId, milliseconds: 1, end: { kind: 'refused', code: 'invalid_request' } })).toBeNull();
});
