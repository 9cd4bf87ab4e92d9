/** `JobError`: a job ended without an answer, with the failure code sent to the coordinator. */
import type { JobFailure, JobFailureCode } from '@inference/protocol';

export class JobError extends Error {
  readonly failure: JobFailure;

  constructor(code: JobFailureCode, facts: Omit<JobFailure, 'code'> = {}) {
    super(`job failed: ${code}`);
    this.name = 'JobError';
    this.failure = { code, ...facts };
  }
}
