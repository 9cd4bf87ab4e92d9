/** `signing` waits for a signature of the enclave and turns its failure into a failure of the job. */
import { JobError } from '../job-error.js';

/** Throws {@link JobError} `signing_failed`, or the signal's reason once aborted. */
export async function signing<Signed>(request: Promise<Signed>, signal: AbortSignal): Promise<Signed> {
  try {
    return await request;
  } catch {
    signal.throwIfAborted();
    throw new JobError('signing_failed');
  }
}
