/** `admit` decides by the unencrypted context of a coordinator's job message whether the job may start on this machine. */
import { CLOCK_TOLERANCE_MS, type JobContext, type KeyId, type ProviderId } from '@inference/protocol';
import { JobError } from './job-error.js';
import type { SealingKey } from './sealing-keys.js';

interface AdmissionState {
  readonly providerId: ProviderId;
  readonly findKey: (id: KeyId) => SealingKey | null;
  /** Ids of the offered models. */
  readonly modelIds: ReadonlySet<string>;
  /** Running jobs of the session, of all models. */
  readonly activeJobs: number;
  readonly maxActiveJobs: number;
  readonly isDraining: boolean;
  /** Failure code for all jobs while the machine is not available (schedule, pause, power, use); otherwise null. */
  readonly absenceCode: 'away' | 'busy' | null;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** Returns the key that opens the job's request, and records the job id against replays. Throws {@link JobError}. */
export function admit(context: JobContext, state: AdmissionState): SealingKey {
  if (context.provider_id !== state.providerId) throw new JobError('bad_context');
  const key = state.findKey(context.key_id);
  if (key === null) throw new JobError('unknown_key');
  if (context.expires_at < context.issued_at) throw new JobError('bad_context');
  if (state.now > context.expires_at + CLOCK_TOLERANCE_MS || state.now < context.issued_at - CLOCK_TOLERANCE_MS)
    throw new JobError('expired');
  if (key.openedJobIds.has(context.job_id)) throw new JobError('replayed');
  if (state.isDraining) throw new JobError('draining');
  if (state.absenceCode !== null) throw new JobError(state.absenceCode);
  if (!state.modelIds.has(context.model)) throw new JobError('model_not_loaded');
  if (state.activeJobs >= state.maxActiveJobs) throw new JobError('busy');
  const added = key.openedJobIds.add([context.job_id], { until: context.expires_at + CLOCK_TOLERANCE_MS, now: state.now });
  if (added === 'full') throw new JobError('busy');
  if (added !== 'added') throw new JobError(added);
  return key;
}
