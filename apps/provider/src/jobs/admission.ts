/** `admit` decides by a job's unencrypted context whether the job may start, and returns the sealing key that opens its request. */
import { CLOCK_TOLERANCE_MS, type JobContext, type KeyId, type ProviderId } from '@inference/protocol';
import { JobError } from './job-error.js';
import type { SealingKey } from './sealing-keys.js';

interface AdmissionState {
  readonly providerId: ProviderId;
  readonly findKey: (id: KeyId) => SealingKey | null;
  readonly modelIds: ReadonlySet<string>;
  /** Running jobs of the session, of all models. */
  readonly activeJobs: number;
  /** Maximum of `activeJobs`. */
  readonly slots: number;
  readonly draining: boolean;
  /** Failure code while this machine accepts no jobs; otherwise null. */
  readonly away: 'away' | 'busy' | null;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** Returns the key to open the job with and marks the job id as used. Throws {@link JobError}. */
export function admit(context: JobContext, state: AdmissionState): SealingKey {
  if (context.provider_id !== state.providerId) throw new JobError('bad_context');
  const key = state.findKey(context.key_id);
  if (key === null) throw new JobError('unknown_key');
  if (context.expires_at < context.issued_at) throw new JobError('bad_context');
  if (state.now > context.expires_at + CLOCK_TOLERANCE_MS || state.now < context.issued_at - CLOCK_TOLERANCE_MS)
    throw new JobError('expired');
  if (key.seen.has(context.job_id)) throw new JobError('replayed');
  if (state.draining) throw new JobError('draining');
  if (state.away !== null) throw new JobError(state.away);
  if (!state.modelIds.has(context.model)) throw new JobError('model_not_loaded');
  if (state.activeJobs >= state.slots) throw new JobError('busy');
  const added = key.seen.add([context.job_id], { until: context.expires_at + CLOCK_TOLERANCE_MS, now: state.now });
  if (added === 'full') throw new JobError('busy');
  if (added !== 'added') throw new JobError(added);
  return key;
}
