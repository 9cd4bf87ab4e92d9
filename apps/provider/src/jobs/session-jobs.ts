/** `SessionJobs`: all jobs of one session. Admits jobs, dispatches frames and credit, reports the load. */
import type { CoordinatorMessage, Frame, JobId, ProviderId, ProviderMessage } from '@inference/protocol';
import { admit } from './admission-policy.js';
import type { Answered } from './answer/answer-text.js';
import { ReplaySet } from './channel/replay-set.js';
import { Job, type JobDependencies, type JobEnd } from './job.js';
import { JobError } from './job-error.js';
import type { SealingKeys } from './sealing-keys.js';

export interface JobEvent {
  readonly jobId: JobId;
  readonly end: JobEnd;
  readonly milliseconds: number;
}

/** Condition of the machine, in the wire format. */
export type MachineState = Pick<ProviderMessage & { type: 'load' }, 'thermal' | 'memory_pressure' | 'power'>;

/** Rates of the newest measured stream, in tokens per second; null: not measured yet. */
export interface MeasuredRates {
  readonly decodeTps: number | null;
  readonly prefillTps: number | null;
}

interface SessionJobsOptions extends Omit<JobDependencies, 'replays'> {
  readonly providerId: ProviderId;
  readonly keys: Pick<SealingKeys, 'find'>;
  /** Ids of the available models. */
  readonly modelIds: () => ReadonlySet<string>;
  readonly slots: number;
  readonly onEnd: (event: JobEvent) => void;
  /** Failure code while this machine accepts no jobs; null: jobs are accepted. Default: null. */
  readonly away?: () => 'away' | 'busy' | null;
  /** Reported with the load; absent: not reported. */
  readonly machine?: () => MachineState;
}

/** Time to gather changes of load for one message, in milliseconds. */
const LOAD_DELAY_MS = 100;

export class SessionJobs {
  readonly #running = new Map<JobId, { readonly job: Job; readonly done: Promise<void> }>();
  #isDraining = false;
  #isAbandoned = false;
  #rates: MeasuredRates = { decodeTps: null, prefillTps: null };
  #loadTimer: NodeJS.Timeout | null = null;

  /** Dependencies of jobs, with the replay set of this session, whose keys open no request of another. */
  readonly #deps: JobDependencies;

  constructor(private readonly options: SessionJobsOptions) {
    this.#deps = { ...options, replays: new ReplaySet() };
  }

  get rates(): MeasuredRates {
    return this.#rates;
  }

  get active(): number {
    return this.#running.size;
  }

  /** Reports a changed or unreported machine state. */
  reportMachine(): void {
    this.#reportLoad();
  }

  handle(message: CoordinatorMessage & { type: 'job' | 'credit' | 'cancel' }): void {
    switch (message.type) {
      case 'job':
        this.#start(message);
        return;
      case 'credit':
        this.#running.get(message.job_id)?.job.grant(message.bytes);
        return;
      case 'cancel':
        this.#running.get(message.job_id)?.job.cancel();
        return;
      default:
        message satisfies never;
    }
  }

  /** Late frames of finished or refused jobs are dropped. */
  frame(frame: Frame): void {
    this.#running.get(frame.jobId)?.job.acceptFrame(frame);
  }

  /**
   * Accepts no more jobs; resolves when running jobs are done.
   *
   * After `graceMs` or at `forced`, jobs without output are handed back, and the others cancelled.
   */
  async drain(graceMs: number, forced?: AbortSignal): Promise<void> {
    this.#isDraining = true;
    this.#send({ type: 'draining' });
    const running = [...this.#running.values()];
    const handBackAll = (): void => running.forEach(({ job }) => void job.handBack('draining'));
    for (const { job } of running) if (!job.accepted) job.handBack('draining');
    const timer = setTimeout(handBackAll, graceMs);
    forced?.addEventListener('abort', handBackAll, { once: true });
    if (forced?.aborted) handBackAll();
    await Promise.all(running.map(({ done }) => done));
    forced?.removeEventListener('abort', handBackAll);
    clearTimeout(timer);
  }

  /**
   * Resolves when no job runs, or at `stay`. Jobs that have not begun are handed back; the others get `graceMs`.
   *
   * At `forced`, jobs without output are handed back; the others get `forcedMs`.
   */
  async drainForAbsence(
    times: { readonly graceMs: number; readonly forcedMs: number },
    forced: AbortSignal,
    stay: AbortSignal,
  ): Promise<void> {
    const code = this.options.away?.() ?? 'busy';
    const running = [...this.#running.values()];
    for (const { job } of running) if (!job.accepted) job.handBack(code);
    const handBackAll = (): void => running.forEach(({ job }) => void job.handBack(code));
    let timer = setTimeout(handBackAll, times.graceMs);
    const onForced = (): void => {
      for (const { job } of running) if (!job.hasOutput) job.handBack(code);
      clearTimeout(timer);
      timer = setTimeout(handBackAll, Math.min(times.forcedMs, times.graceMs));
    };
    let onStay = (): void => {};
    const stays = new Promise<void>((resolve) => (onStay = resolve));
    forced.addEventListener('abort', onForced, { once: true });
    stay.addEventListener('abort', onStay, { once: true });
    if (forced.aborted) onForced();
    if (stay.aborted) onStay();
    await Promise.race([Promise.all(running.map(({ done }) => done)), stays]);
    forced.removeEventListener('abort', onForced);
    stay.removeEventListener('abort', onStay);
    clearTimeout(timer);
  }

  /** Stops all jobs after the end of the session. */
  abandon(): void {
    this.#isAbandoned = true;
    if (this.#loadTimer !== null) clearTimeout(this.#loadTimer);
    this.#giveUpAll();
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
        activeJobs: this.#running.size,
        slots: this.options.slots,
        draining: this.#isDraining,
        away: this.options.away?.() ?? null,
        now: (this.options.now ?? Date.now)(),
      });
      job = new Job(message, key, this.#deps);
    } catch (error) {
      const failure = error instanceof JobError ? error.failure : { code: 'internal' as const };
      this.#send({ type: 'job_failed', job_id: context.job_id, failure });
      this.options.onEnd({ jobId: context.job_id, end: { kind: 'failed', failure }, milliseconds: 0 });
      return;
    }
    const done = job.run().then((end) => {
      this.#running.delete(context.job_id);
      if (end.kind === 'completed') this.#measured(end.answered);
      this.#reportLoad();
      this.options.onEnd({ jobId: context.job_id, end, milliseconds: performance.now() - startedAt });
    });
    this.#running.set(context.job_id, { job, done });
    this.#reportLoad();
  }

  #measured({ decodeTps, prefillTps }: Answered): void {
    this.#rates = { decodeTps: decodeTps ?? this.#rates.decodeTps, prefillTps: prefillTps ?? this.#rates.prefillTps };
  }

  #giveUpAll(): void {
    for (const { job } of this.#running.values()) job.giveUp();
  }

  #reportLoad(): void {
    if (this.#loadTimer !== null || this.#isAbandoned) return;
    this.#loadTimer = setTimeout(() => {
      this.#loadTimer = null;
      const { decodeTps, prefillTps } = this.#rates;
      this.#send({
        type: 'load',
        active_jobs: this.#running.size,
        ...(decodeTps === null ? {} : { decode_tps: roundToTenths(decodeTps) }),
        ...(prefillTps === null ? {} : { prefill_tps: roundToTenths(prefillTps) }),
        ...this.options.machine?.(),
      });
    }, LOAD_DELAY_MS);
  }

  #send(message: ProviderMessage): void {
    if (!this.#isAbandoned) this.options.send(message);
  }
}

function roundToTenths(rate: number): number {
  return Math.round(rate * 10) / 10;
}
