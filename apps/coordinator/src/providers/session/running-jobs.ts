/**
 * `RunningJobs`: the slots of one session, with the jobs in them. Part of `ProviderSession`.
 *
 * A job occupies a slot until the provider reports its end. After a stop request, the wait for this report is limited.
 */
import type { Frame, JobFailure, JobId, JobMessage, ProviderMessage, RequestFrames } from '@inference/protocol';
import type { JobHandle, JobSink } from '../provider-connection.js';
import type { ProviderSocket } from './provider-socket.js';

type JobReport = Extract<ProviderMessage, { type: 'job_accepted' | 'job_progress' | 'job_failed' | 'job_completed' }>;

/** Size of an encrypted frame without content: the authentication tag only. */
export const EMPTY_PAYLOAD_BYTES = 16;

interface RunningJobsOptions {
  readonly socket: Pick<ProviderSocket, 'send' | 'sendJob' | 'hasSent' | 'withdrawJob'>;
  /** Maximum wait for the end of a stopped job. Afterwards the slot is freed without a report. */
  readonly cancelConfirmMs: number;
  /** Called when a slot becomes free. Not called at the end of the session. */
  readonly onFreed: () => void;
}

interface OccupiedSlot {
  /** Receives the events of the job; null after `cancel`. */
  sink: JobSink | null;
  /** Bytes that the provider may still send. Bounds the frames under way after `cancel`, which no sink checks any more. */
  creditBytes: number;
  /** Whether the final frame of the response arrived. */
  isFinished: boolean;
  isAccepted: boolean;
  /** Runs for `cancelConfirmMs` after the stop request; null: no stop was requested. */
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

  /** Number of occupied and reserved slots. */
  get usedSlots(): number {
    return this.#occupied.size + this.#reservedSlots;
  }

  /** Number of jobs that were neither cancelled nor ended. */
  get runningCount(): number {
    let count = 0;
    for (const { sink } of this.#occupied.values()) if (sink !== null) count++;
    return count;
  }

  /** Reserves a slot. `start` or `releaseSlot` must follow. */
  reserveSlot(): void {
    this.#reservedSlots++;
  }

  /** Frees a reserved slot without a job. */
  releaseSlot(): void {
    this.#reservedSlots--;
    this.#options.onFreed();
  }

  /** Sends a job to a reserved slot. If the session has ended, the job is reported as lost after this call has returned. */
  start(message: JobMessage, frames: RequestFrames, sink: JobSink): JobHandle {
    const jobId = message.context.job_id;
    const { socket } = this.#options;
    this.#reservedSlots--;
    this.#occupied.set(jobId, { sink, creditBytes: message.credit, isFinished: false, isAccepted: false, stopTimer: null });
    socket.sendJob(message, frames);
    if (this.#isClosed) queueMicrotask(() => this.loseAll());
    return {
      isSent: () => socket.hasSent(jobId),
      grant: (bytes) => {
        const slot = this.#occupied.get(jobId);
        if (slot === undefined || slot.sink === null) return;
        slot.creditBytes += bytes;
        socket.send({ type: 'credit', job_id: jobId, bytes });
      },
      recall: () => this.#requestStop(jobId),
      cancel: () => {
        const slot = this.#occupied.get(jobId);
        if (slot !== undefined) slot.sink = null;
        this.#requestStop(jobId);
      },
    };
  }

  /** Reports progress of the send queue to the job, while its request is being sent. */
  sending(jobId: JobId): void {
    this.#sinkOf(jobId)?.sending();
  }

  /** Handles a provider's message about a job. False: the job is unknown, or was accepted before. */
  receive(message: JobReport): boolean {
    const { job_id: jobId } = message;
    const slot = this.#occupied.get(jobId);
    if (slot === undefined) return false;
    switch (message.type) {
      case 'job_accepted':
        if (slot.isAccepted) return false;
        slot.isAccepted = true;
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

  /** Handles a frame of a response. False: the job is unknown, or was cancelled and the frame exceeds the credit granted before. */
  receiveFrame(frame: Frame): boolean {
    const slot = this.#occupied.get(frame.jobId);
    if (slot === undefined) return false;
    const { sink, isFinished } = slot;
    slot.creditBytes -= Math.max(0, frame.payload.length - EMPTY_PAYLOAD_BYTES);
    slot.isFinished ||= frame.final;
    sink?.frame(frame);
    return sink !== null || (!isFinished && slot.creditBytes >= 0);
  }

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
