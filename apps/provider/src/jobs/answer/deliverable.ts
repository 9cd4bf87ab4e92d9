/** `requireDeliverable` fails a job whose unstreamed response is larger than coordinators accept, which would end the session. */
import { MAX_PLAIN_RESPONSE_BYTES } from '@inference/protocol';
import { JobError } from '../job-error.js';

/** Throws {@link JobError} for a body that is too large. `param`: request field that the client should lower. */
export function requireDeliverable(body: string, param: string): void {
  if (Buffer.byteLength(body) > MAX_PLAIN_RESPONSE_BYTES) throw new JobError('unsupported', { param });
}
