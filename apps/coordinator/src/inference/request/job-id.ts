/**
 * Ids of jobs: UUIDs of version 7 (RFC 9562 section 5.7), which begin with the time. Jobs that come one after the other stand
 * beside each other in every index by their id, so that a transaction writes one page of it and not one for each job.
 */
import { randomUUID } from 'node:crypto';
import type { JobId } from '@inference/protocol';

/** A new id. `now` in milliseconds since 1970; the 74 bits behind it are random. */
export function newJobId(now: number): JobId {
  const time = now.toString(16).padStart(12, '0');
  // Of a random one: what follows the version, the variant included.
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}` as JobId;
}
