/** Ids of jobs, and the ids in headers and responses that are written from them. */
import { randomUUID } from 'node:crypto';
import type { JobId } from '@inference/protocol';

const REQUEST_ID_PREFIX = 'req_';
/** UUID with or without dashes, after the prefix of a request id or response id (`chatcmpl-`, `msg_`, …). */
const JOB_ID_TEXT = /^(?:[a-z]{1,16}[-_])?([0-9a-f]{8})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{12})$/;

/** Job id: UUID version 7 (RFC 9562 section 5.7), whose timestamp keeps recent jobs adjacent in indexes. */
export function newJobId(now: number): JobId {
  const time = now.toString(16).padStart(12, '0');
  // Random UUID after its version digit, including the variant bits.
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

/** Job id in a job id, request id or response id as clients know them. Null: the text holds no such id. */
export function findJobId(text: string): JobId | null {
  const match = JOB_ID_TEXT.exec(text.trim().toLowerCase());
  return match === null ? null : (match.slice(1).join('-') as JobId);
}
