/**
 * The jobs that occupy a provider's slots, from the reservation until the provider has finished. A recalled or cancelled job
 * occupies its slot until the provider confirms or a deadline passes, because the provider may still be decoding.
 */
import type { Frame, JobCompleted, JobFailure, JobId } from '@inference/protocol';
import type { JobSink } from '../provider-connection.js';

interface Entry {
  /** Null once cancelled. */
  sink: JobSink | null;
  /** Starts with the stop request to the provider. */
  timer: NodeJS.Timeout | null;
}

export class RunningJobs {
  readonly #jobs = new Map<JobId, Entry>();
  readonly #onFreed: () => void;
  #reserved = 0;

  constructor(onFreed: () => void) {
    this.#onFreed = onFreed;
  }

  /** Slots in use, reserved ones included. */
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
    this.#onFreed();
  }

  /** Turns a reservation into a running job. */
  start(jobId: JobId, sink: JobSink): void {
    this.#reserved--;
    this.#jobs.set(jobId, { sink, timer: null });
  }

  has(jobId: JobId): boolean {
    return this.#jobs.get(jobId)?.sink != null;
  }

  /**
   * Marks a job as asked to stop; the sink still receives the end. Without confirmation the slot is freed after `confirmMs`. False:
   * nothing to send.
   */
  recall(jobId: JobId, confirmMs: number): boolean {
    const entry = this.#jobs.get(jobId);
    if (entry === undefined || entry.timer !== null) return false;
    entry.timer = setTimeout(() => this.#free(jobId, entry), confirmMs);
    entry.timer.unref();
    return true;
  }

  /** As {@link recall}, and the sink hears nothing more. */
  cancel(jobId: JobId, confirmMs: number): boolean {
    const entry = this.#jobs.get(jobId);
    if (entry !== undefined) entry.sink = null;
    return this.recall(jobId, confirmMs);
  }

  /** Part of the send queue went out, and the rest of this job's request still waits. */
  sending(jobId: JobId): void {
    this.#jobs.get(jobId)?.sink?.sending();
  }

  /** Each of the following returns false for an unknown job, so the session can count it. */
  accepted(jobId: JobId): boolean {
    const entry = this.#jobs.get(jobId);
    entry?.sink?.accepted();
    return entry !== undefined;
  }

  progressed(jobId: JobId): boolean {
    const entry = this.#jobs.get(jobId);
    entry?.sink?.progressed();
    return entry !== undefined;
  }

  frame(frame: Frame): boolean {
    const entry = this.#jobs.get(frame.jobId);
    entry?.sink?.frame(frame);
    return entry !== undefined;
  }

  completed(message: JobCompleted): boolean {
    const entry = this.#jobs.get(message.job_id);
    if (entry === undefined) return false;
    this.#free(message.job_id, entry);
    entry.sink?.completed(message);
    return true;
  }

  failed(jobId: JobId, failure: JobFailure): boolean {
    const entry = this.#jobs.get(jobId);
    if (entry === undefined) return false;
    this.#free(jobId, entry);
    entry.sink?.failed(failure);
    return true;
  }

  /** The connection ended; all jobs are lost. */
  loseAll(): void {
    const entries = [...this.#jobs.values()];
    this.#jobs.clear();
    for (const entry of entries) {
      if (entry.timer !== null) clearTimeout(entry.timer);
      entry.sink?.lost();
    }
  }

  #free(jobId: JobId, entry: Entry): void {
    if (entry.timer !== null) clearTimeout(entry.timer);
    if (this.#jobs.get(jobId) !== entry) return;
    this.#jobs.delete(jobId);
    this.#onFreed();
  }
}
