/** Ids of jobs, and the request and response ids derived from them. */
import { randomUUID } from 'node:crypto';
import type { JobId } from '@inference/protocol';

const REQUEST_ID_PREFIX = 'req_';
/** A UUID, with or without dashes, after an optional prefix such as `req_`, `chatcmpl-` or `msg_`. */
const JOB_ID_TEXT = /^(?:[a-z]{1,16}[-_])?([0-9a-f]{8})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{12})$/;

/** New job id: UUID version 7 (RFC 9562 section 5.7). Its timestamp keeps recent jobs adjacent in indexes. */
export function newJobId(now: number): JobId {
  const time = now.toString(16).padStart(12, '0');
  // The rest comes from a random UUID, which has the same variant bits.
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}` as JobId;
}

/** Id of an HTTP request, for `X-Request-Id` and `Request-Id`. */
export function newRequestId(now: number): string {
  return REQUEST_ID_PREFIX + newJobId(now).replaceAll('-', '');
}

/** Id of the job that an HTTP request with this id starts. */
export function jobIdOfRequest(requestId: string): JobId {
  const jobId = findJobId(requestId);
  if (jobId === null) throw new Error('not an id made by newRequestId');
  return jobId;
}

/** Job id that a job id, request id or response id contains. Null for other texts. */
export function findJobId(text: string): JobId | null {
  const match = JOB_ID_TEXT.exec(text.trim().toLowerCase());
  return match === null ? null : (match.slice(1).join('-') as JobId);
}
