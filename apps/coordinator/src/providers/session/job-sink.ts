/**
 * The seam between a provider's session and whoever runs a job on it. Plain callbacks, because they run once per frame;
 * after `completed`, `failed` or `lost` no other call follows.
 */
import type { Frame, JobCompleted, JobFailure } from '@inference/protocol';

export interface JobSink {
  /** The provider takes bytes while this job's request waits to be sent, or the last of it has just gone out. */
  sending(): void;
  accepted(): void;
  /** The provider is at work, though it has nothing to say yet. */
  progressed(): void;
  frame(frame: Frame): void;
  completed(message: JobCompleted): void;
  failed(failure: JobFailure): void;
  /** The connection ended first. */
  lost(): void;
}

/** What the runner of a job may ask of the session. All calls are harmless once the job is over. */
export interface JobHandle {
  /** False while the job's first message waits to be sent to the provider. */
  isSent(): boolean;
  /** Allows this many response bytes more. */
  grant(bytes: number): void;
  /** Tells the provider to stop and sign what it has written. The sink hears how that ends, unless it is cancelled as well. */
  recall(): void;
  /** Tells the provider to stop. The sink hears nothing more; the slot is free once the provider confirms. */
  cancel(): void;
}
