/**
 * `RunningJobs`: the slots of one session, their jobs, and the messages of those jobs. Created by `ProviderSession`.
 *
 * A job occupies a slot from `start` until the provider reports an end. After a stop request, the wait for the report is limited.
 */
import type { Frame, JobFailure, JobId, JobMessage, ProviderMessage, RequestFrames } from '@inference/protocol';
import type { JobHandle, JobSink } from '../provider-connection.js';
import type { ProviderSocket } from './provider-socket.js';

/** Messages of a provider about one job. */
type JobReport = Extract<ProviderMessage, { type: 'job_accepted' | 'job_progress' | 'job_failed' | 'job_completed' }>;

interface RunningJobsOptions {
  readonly socket: Pick<ProviderSocket, 'send' | 'sendJob' | 'hasSent' | 'withdrawJob'>;
  /** Maximum wait for the end of a stopped job, in milliseconds. The slot is then freed without a report. */
  readonly cancelConfirmMs: number;
  /** Called whenever a slot becomes free, except at the end of the session. */
  readonly onFreed: () => void;
}

interface OccupiedSlot {
  /** Receives the events of the job. Null after `cancel`: the caller no longer listens. */
  sink: JobSink | null;
  /** Runs from the stop request for `cancelConfirmMs`. Null: no stop was requested. */
  stopTimer: NodeJS.Timeout | null;
}

export class RunningJobs {
  readonly #options: RunningJobsOptions;
  readonly #occupied = new Map<JobId, OccupiedSlot>();
  #reservedSlots = 0;
  #isClosed = false;

  constructor(options: RunningJobsOptions) {
    this.#options = options;
  }

  /** Occupied and reserved slots. */
  get usedSlots(): number {
    return this.#occupied.size + this.#reservedSlots;
  }

  /** Jobs neither cancelled nor ended. */
  get runningCount(): number {
    let count = 0;
    for (const { sink } of this.#occupied.values()) if (sink !== null) count++;
    return count;
  }

  /** Reserves a slot for a later `start`, or `releaseSlot` without a job. */
  reserveSlot(): void {
    this.#reservedSlots++;
  }

  /** Frees a reserved slot that gets no job. */
  releaseSlot(): void {
    this.#reservedSlots--;
    this.#options.onFreed();
  }

  /** Sends a job on a reserved slot. After the session's end, the job is reported lost in a later turn. */
  start(message: JobMessage, frames: RequestFrames, sink: JobSink): JobHandle {
    const jobId = message.context.job_id;
    const { socket } = this.#options;
    this.#reservedSlots--;
    this.#occupied.set(jobId, { sink, stopTimer: null });
    socket.sendJob(message, frames);
    if (this.#isClosed) queueMicrotask(() => this.loseAll());
    return {
      isSent: () => socket.hasSent(jobId),
      grant: (bytes) => {
        if (this.#sinkOf(jobId) !== null) socket.send({ type: 'credit', job_id: jobId, bytes });
      },
      recall: () => this.#requestStop(jobId),
      cancel: () => {
        const slot = this.#occupied.get(jobId);
        if (slot !== undefined) slot.sink = null;
        this.#requestStop(jobId);
      },
    };
  }

  /** Passes on progress of the send queue: a part of the job's request, possibly the last, was sent. */
  sending(jobId: JobId): void {
    this.#sinkOf(jobId)?.sending();
  }

  /** Handles a provider's message about a job. False: the job is unknown. */
  receive(message: JobReport): boolean {
    const { job_id: jobId } = message;
    const slot = this.#occupied.get(jobId);
    if (slot === undefined) return false;
    switch (message.type) {
      case 'job_accepted':
        slot.sink?.accepted();
        return true;
      case 'job_progress':
        slot.sink?.progressed();
        return true;
      case 'job_failed':
        this.#fail(jobId, slot, message.failure);
        return true;
      case 'job_completed':
        this.#free(jobId, slot);
        slot.sink?.completed(message);
        return true;
      default:
        return message satisfies never;
    }
  }

  /** Handles a frame of a response. False: the job is unknown. */
  receiveFrame(frame: Frame): boolean {
    const slot = this.#occupied.get(frame.jobId);
    slot?.sink?.frame(frame);
    return slot !== undefined;
  }

  /** Ends all jobs as lost, because the connection ended. */
  loseAll(): void {
    this.#isClosed = true;
    const slots = [...this.#occupied.values()];
    this.#occupied.clear();
    for (const { sink, stopTimer } of slots) {
      if (stopTimer !== null) clearTimeout(stopTimer);
      sink?.lost();
    }
  }

  #sinkOf(jobId: JobId): JobSink | null {
    return this.#occupied.get(jobId)?.sink ?? null;
  }

  /** Asks the provider to stop a job, at most once. A job still in the send queue ends at once, as `cancelled`. */
  #requestStop(jobId: JobId): void {
    const slot = this.#occupied.get(jobId);
    if (slot === undefined || slot.stopTimer !== null) return;
    const { socket, cancelConfirmMs } = this.#options;
    if (!socket.hasSent(jobId)) {
      this.#fail(jobId, slot, { code: 'cancelled' });
      return;
    }
    slot.stopTimer = setTimeout(() => this.#free(jobId, slot), cancelConfirmMs);
    slot.stopTimer.unref();
    socket.withdrawJob(jobId);
    socket.send({ type: 'cancel', job_id: jobId });
  }

  #fail(jobId: JobId, slot: OccupiedSlot, failure: JobFailure): void {
    this.#free(jobId, slot);
    slot.sink?.failed(failure);
  }

  #free(jobId: JobId, slot: OccupiedSlot): void {
    if (slot.stopTimer !== null) clearTimeout(slot.stopTimer);
    if (this.#occupied.get(jobId) !== slot) return;
    this.#occupied.delete(jobId);
    // A job that ended early may have unsent frames.
    this.#options.socket.withdrawJob(jobId);
    this.#options.onFreed();
  }
}
