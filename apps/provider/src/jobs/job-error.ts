/** `JobError`: a job ends without an answer. `failure` is what the coordinator is told. */
import type { JobFailure, JobFailureCode } from '@inference/protocol';

export class JobError extends Error {
  readonly failure: JobFailure;

  constructor(code: JobFailureCode, facts: Omit<JobFailure, 'code'> = {}) {
    super(`job failed: ${code}`);
    this.name = 'JobError';
    this.failure = { code, ...facts };
  }
}
