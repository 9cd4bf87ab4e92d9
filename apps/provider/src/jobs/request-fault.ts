/** `requestFault` converts an error that blames the request to an API error, for the sealed answer of an end-to-end job. */
import { type ApiError, jobFailureError, RequestError } from '@inference/formats';
import { JOB_FAILURES } from '@inference/protocol';
import { JobError } from './job-error.js';

/** Null if the request is not to blame. */
export function requestFault(error: unknown): ApiError | null {
  if (error instanceof RequestError) return error;
  if (!(error instanceof JobError) || JOB_FAILURES[error.failure.code].blame !== 'client') return null;
  return jobFailureError(error.failure);
}
