/** A place for one job on one provider, taken in the same turn in which the provider was chosen. Used once or given back. */
import type { JobMessage } from '@inference/protocol';
import type { JobHandle, JobSink } from './job-sink.js';
import type { OnlineSession } from './provider-session.js';

export class JobSlot {
  readonly session: OnlineSession;
  #used = false;

  constructor(session: OnlineSession) {
    this.session = session;
    session.jobs.reserve();
  }

  /** Sends the job. `sink.lost` may be called before this returns, when the connection breaks under the send. */
  start(message: JobMessage, frames: readonly Uint8Array[], sink: JobSink): JobHandle {
    this.#use();
    return this.session.startJob(message, frames, sink);
  }

  /** Gives the place back unused. */
  release(): void {
    if (this.#used) return;
    this.#use();
    this.session.jobs.release();
  }

  #use(): void {
    if (this.#used) throw new Error('a slot serves one job');
    this.#used = true;
  }
}
