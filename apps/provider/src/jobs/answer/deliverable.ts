/** `requireDeliverable` rejects an unstreamed response body that is larger than coordinators accept: it would end the session. */
import { MAX_PLAIN_RESPONSE_BYTES } from '@inference/protocol';
import { JobError } from '../job-error.js';

/** Throws {@link JobError} for a body that is too large. `param`: request field that the client should reduce. */
export function requireDeliverable(body: string, param: string): void {
  if (Buffer.byteLength(body) > MAX_PLAIN_RESPONSE_BYTES) throw new JobError('unsupported', { param });
}
