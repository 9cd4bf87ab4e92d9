/** `signing` turns a failed signature of the enclave into a failure of the job. */
import { JobError } from '../job-error.js';

/** Result of a signing request. Throws {@link JobError} `signing_failed`, or the signal's reason. */
export async function signing<Signed>(request: Promise<Signed>, signal: AbortSignal): Promise<Signed> {
  try {
    return await request;
  } catch {
    signal.throwIfAborted();
    throw new JobError('signing_failed');
  }
}
