/**
 * `SessionJobs`: the jobs of one session with a coordinator, created by the daemon's coordinator connection.
 *
 * Starts admitted jobs, passes request frames and credit on to each, and reports the load. Drains (lets running jobs end) before an
 * absence or a shutdown.
 */
import type { CoordinatorMessage, Frame, JobId, ProviderId, ProviderMessage } from '@inference/protocol';
import { admit } from './admission.js';
import type { AnswerSummary } from './answer/answer-text.js';
import { Job, type JobDependencies, type JobEnd } from './job.js';
import { JobError } from './job-error.js';
import type { SealingKeys } from './sealing-keys.js';

export interface JobEvent {
  readonly jobId: JobId;
  readonly end: JobEnd;
  readonly milliseconds: number;
}

/** Heat, memory pressure and power of this Mac, in the wire format. */
export type MachineState = Pick<ProviderMessage & { type: 'load' }, 'thermal' | 'memory_pressure' | 'power'>;

/** Latest measured rates, in tokens per second; null until measured. */
export interface MeasuredRates {
  readonly decodeTps: number | null;
  readonly prefillTps: number | null;
}

interface SessionJobsOptions extends JobDependencies {
  readonly providerId: ProviderId;
  readonly keys: Pick<SealingKeys, 'find'>;
  /** Ids of the available models. */
  readonly modelIds: () => ReadonlySet<string>;
  /** Maximum concurrent jobs, of all models together. */
  readonly slots: number;
  readonly onEnd: (event: JobEvent) => void;
  /** Failure code for all jobs while the machine is not available, otherwise null. Default: always null. */
  readonly away?: () => 'away' | 'busy' | null;
  /** Reported with the load, if given. */
  readonly machine?: () => MachineState;
}

/** Time to gather changes of load for one message, in milliseconds. */
const LOAD_DELAY_MS = 100;

export class SessionJobs {
  readonly #runningById = new Map<JobId, { readonly job: Job; readonly done: Promise<void> }>();
  #isDraining = false;
  #isSessionEnded = false;
  #rates: MeasuredRates = { decodeTps: null, prefillTps: null };
  #loadTimer: NodeJS.Timeout | null = null;

  constructor(private readonly options: SessionJobsOptions) {}

  get rates(): MeasuredRates {
    return this.#rates;
  }

  /** Number of running jobs. */
  get active(): number {
    return this.#runningById.size;
  }

  /** Reports a changed machine state, with the load. */
  reportMachine(): void {
    this.#reportLoad();
  }

  handle(message: CoordinatorMessage & { type: 'job' | 'credit' | 'cancel' }): void {
    switch (message.type) {
      case 'job':
        this.#start(message);
        return;
      case 'credit':
        this.#runningById.get(message.job_id)?.job.grant(message.bytes);
        return;
      case 'cancel':
        this.#runningById.get(message.job_id)?.job.cancel();
        return;
      default:
        message satisfies never;
    }
  }

  /** Passes a request frame on to the job. Late frames of finished or refused jobs are dropped. */
  frame(frame: Frame): void {
    this.#runningById.get(frame.jobId)?.job.acceptFrame(frame);
  }

  /**
   * Drains for a shutdown: admits no more jobs, and resolves when no job runs.
   *
   * Jobs that are not accepted yet are handed back (failed for another provider) at once. After `graceMs` or at `force`, so are jobs
   * without output, and the others are cancelled.
   */
  async drain(graceMs: number, force?: AbortSignal): Promise<void> {
    this.#isDraining = true;
    this.#send({ type: 'draining' });
    const running = [...this.#runningById.values()];
    const handBackAll = (): void => running.forEach(({ job }) => void job.handBack('draining'));
    for (const { job } of running) if (!job.isAccepted) job.handBack('draining');
    const timer = setTimeout(handBackAll, graceMs);
    force?.addEventListener('abort', handBackAll, { once: true });
    if (force?.aborted) handBackAll();
    await Promise.all(running.map(({ done }) => done));
    force?.removeEventListener('abort', handBackAll);
    clearTimeout(timer);
  }

  /**
   * Drains for an absence, during which the session stays connected. Resolves when no job from before the call runs, or at `cancel`.
   *
   * Jobs that are not accepted yet are handed back at once; the others get `graceMs`. At `force`, jobs without output are handed back,
   * and the others get at most `forcedMs`.
   */
  async drainForAbsence(
    times: { readonly graceMs: number; readonly forcedMs: number },
    force: AbortSignal,
    cancel: AbortSignal,
  ): Promise<void> {
    const code = this.options.away?.() ?? 'busy';
    const running = [...this.#runningById.values()];
    for (const { job } of running) if (!job.isAccepted) job.handBack(code);
    const handBackAll = (): void => running.forEach(({ job }) => void job.handBack(code));
    let timer = setTimeout(handBackAll, times.graceMs);
    const onForce = (): void => {
      for (const { job } of running) if (!job.hasOutput) job.handBack(code);
      clearTimeout(timer);
      timer = setTimeout(handBackAll, Math.min(times.forcedMs, times.graceMs));
    };
    let onCancel = (): void => {};
    const cancelled = new Promise<void>((resolve) => (onCancel = resolve));
    force.addEventListener('abort', onForce, { once: true });
    cancel.addEventListener('abort', onCancel, { once: true });
    if (force.aborted) onForce();
    if (cancel.aborted) onCancel();
    await Promise.race([Promise.all(running.map(({ done }) => done)), cancelled]);
    force.removeEventListener('abort', onForce);
    cancel.removeEventListener('abort', onCancel);
    clearTimeout(timer);
  }

  /** Stops all jobs after the end of the session. Sends nothing from then on. */
  abandon(): void {
    this.#isSessionEnded = true;
    if (this.#loadTimer !== null) clearTimeout(this.#loadTimer);
    for (const { job } of this.#runningById.values()) job.abort();
  }

  #start(message: CoordinatorMessage & { type: 'job' }): void {
    const { context } = message;
    const startedAt = performance.now();
    let job: Job;
    try {
      const key = admit(context, {
        providerId: this.options.providerId,
        findKey: (id) => this.options.keys.find(id),
        modelIds: this.options.modelIds(),
        activeJobs: this.#runningById.size,
        maxActiveJobs: this.options.slots,
        isDraining: this.#isDraining,
        absenceCode: this.options.away?.() ?? null,
        now: (this.options.now ?? Date.now)(),
      });
      job = new Job(message, key, this.options);
    } catch (error) {
      const failure = error instanceof JobError ? error.failure : { code: 'internal' as const };
      this.#send({ type: 'job_failed', job_id: context.job_id, failure });
      this.options.onEnd({ jobId: context.job_id, end: { kind: 'failed', failure }, milliseconds: 0 });
      return;
    }
    const done = job.run().then((end) => {
      this.#runningById.delete(context.job_id);
      if (end.kind === 'completed') this.#recordRates(end.summary);
      this.#reportLoad();
      this.options.onEnd({ jobId: context.job_id, end, milliseconds: performance.now() - startedAt });
    });
    this.#runningById.set(context.job_id, { job, done });
    this.#reportLoad();
  }

  /** Stores the rates of an answer. A rate that this answer did not measure keeps its value. */
  #recordRates({ decodeTps, prefillTps }: AnswerSummary): void {
    this.#rates = { decodeTps: decodeTps ?? this.#rates.decodeTps, prefillTps: prefillTps ?? this.#rates.prefillTps };
  }

  /** Sends the load after {@link LOAD_DELAY_MS}, with the changes until then. */
  #reportLoad(): void {
    if (this.#loadTimer !== null || this.#isSessionEnded) return;
    this.#loadTimer = setTimeout(() => {
      this.#loadTimer = null;
      const { decodeTps, prefillTps } = this.#rates;
      this.#send({
        type: 'load',
        active_jobs: this.#runningById.size,
        ...(decodeTps === null ? {} : { decode_tps: roundToTenths(decodeTps) }),
        ...(prefillTps === null ? {} : { prefill_tps: roundToTenths(prefillTps) }),
        ...this.options.machine?.(),
      });
    }, LOAD_DELAY_MS);
  }

  #send(message: ProviderMessage): void {
    if (!this.#isSessionEnded) this.options.send(message);
  }
}

function roundToTenths(rate: number): number {
  return Math.round(rate * 10) / 10;
}
