/**
 * `RunningJobs`: jobs in a provider's slots and their messages.
 *
 * A cancelled job occupies its slot until the provider confirms, or a deadline.
 */
import type { Frame, JobFailure, JobId, JobMessage, ProviderMessage, RequestFrames } from '@inference/protocol';
import type { JobHandle, JobSink } from '../provider-connection.js';
import type { ProviderSocket } from './provider-socket.js';

/** Messages of a provider about one job. */
type JobReport = Extract<ProviderMessage, { type: 'job_accepted' | 'job_progress' | 'job_failed' | 'job_completed' }>;

interface RunningJobsOptions {
  readonly socket: Pick<ProviderSocket, 'send' | 'sendJob' | 'hasSent' | 'withdrawJob'>;
  /** Time after which a stopped job frees its slot without confirmation. */
  readonly cancelConfirmMs: number;
  readonly onFreed: () => void;
}

interface Entry {
  /** Null once cancelled. */
  sink: JobSink | null;
  /** Starts with the stop request to the provider. */
  timer: NodeJS.Timeout | null;
}

export class RunningJobs {
  readonly #options: RunningJobsOptions;
  readonly #jobs = new Map<JobId, Entry>();
  #reserved = 0;
  #isClosed = false;

  constructor(options: RunningJobsOptions) {
    this.#options = options;
  }

  /** Slots in use, including reserved slots. */
  get used(): number {
    return this.#jobs.size + this.#reserved;
  }

  /** Jobs with a sink: neither cancelled nor finished. */
  get running(): number {
    let count = 0;
    for (const { sink } of this.#jobs.values()) if (sink !== null) count++;
    return count;
  }

  reserve(): void {
    this.#reserved++;
  }

  release(): void {
    this.#reserved--;
    this.#options.onFreed();
  }

  /** Sends a job on a reserved slot. After the session's end, the job is reported lost in a later turn. */
  start(message: JobMessage, frames: RequestFrames, sink: JobSink): JobHandle {
    const jobId = message.context.job_id;
    const { socket } = this.#options;
    this.#reserved--;
    this.#jobs.set(jobId, { sink, timer: null });
    socket.sendJob(message, frames);
    if (this.#isClosed) queueMicrotask(() => this.loseAll());
    return {
      isSent: () => socket.hasSent(jobId),
      grant: (bytes) => {
        if (this.#jobs.get(jobId)?.sink != null) socket.send({ type: 'credit', job_id: jobId, bytes });
      },
      recall: () => this.#stop(jobId),
      cancel: () => {
        const running = this.#jobs.get(jobId);
        if (running !== undefined) running.sink = null;
        this.#stop(jobId);
      },
    };
  }

  /** Part of the send queue went out, and the rest of this job's request still waits. */
  sending(jobId: JobId): void {
    this.#jobs.get(jobId)?.sink?.sending();
  }

  /** Handles a provider's message about a job. False: the job is unknown. */
  receive(message: JobReport): boolean {
    const entry = this.#jobs.get(message.job_id);
    if (entry === undefined) return false;
    switch (message.type) {
      case 'job_accepted':
        entry.sink?.accepted();
        return true;
      case 'job_progress':
        entry.sink?.progressed();
        return true;
      case 'job_failed':
        this.#fail(message.job_id, entry, message.failure);
        return true;
      case 'job_completed':
        this.#free(message.job_id, entry);
        entry.sink?.completed(message);
        return true;
      default:
        return message satisfies never;
    }
  }

  /** Handles a frame of a response. False: the job is unknown. */
  receiveFrame(frame: Frame): boolean {
    const entry = this.#jobs.get(frame.jobId);
    entry?.sink?.frame(frame);
    return entry !== undefined;
  }

  /** The connection ended; all jobs are lost. */
  loseAll(): void {
    this.#isClosed = true;
    const entries = [...this.#jobs.values()];
    this.#jobs.clear();
    for (const entry of entries) {
      if (entry.timer !== null) clearTimeout(entry.timer);
      entry.sink?.lost();
    }
  }

  /** Asks the provider to stop a job, once. The slot is freed when the provider confirms, or after `cancelConfirmMs`. */
  #stop(jobId: JobId): void {
    const entry = this.#jobs.get(jobId);
    if (entry === undefined || entry.timer !== null) return;
    const { socket, cancelConfirmMs } = this.#options;
    entry.timer = setTimeout(() => this.#free(jobId, entry), cancelConfirmMs);
    entry.timer.unref();
    const isSent = socket.hasSent(jobId);
    socket.withdrawJob(jobId);
    if (isSent) socket.send({ type: 'cancel', job_id: jobId });
    else this.#fail(jobId, entry, { code: 'cancelled' });
  }

  #fail(jobId: JobId, entry: Entry, failure: JobFailure): void {
    this.#free(jobId, entry);
    entry.sink?.failed(failure);
  }

  #free(jobId: JobId, entry: Entry): void {
    if (entry.timer !== null) clearTimeout(entry.timer);
    if (this.#jobs.get(jobId) !== entry) return;
    this.#jobs.delete(jobId);
    // A job that failed early has unsent frames.
    this.#options.socket.withdrawJob(jobId);
    this.#options.onFreed();
  }
}
