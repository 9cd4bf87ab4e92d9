/**
 * `Job` runs one job of a coordinator: opens the sealed request, answers with a model, has the answer signed and erases the plaintext.
 *
 * Sends `job_completed` or `job_failed` at the end.
 */
import type { ErrorCode, ResponseMetadata } from '@inference/formats';
import type { Frame, JobContext, JobFailure, JobMessage, ProviderMessage } from '@inference/protocol';
import type { EmbeddingRequest } from '../engine/messages.js';
import { answerEmbeddings } from './answer/answer-embeddings.js';
import { answerImages } from './answer/answer-images.js';
import { type AnswerSummary, answerText } from './answer/answer-text.js';
import type { ModelIdentity } from './answer/computed-by.js';
import { CoordinatorChannel, type CoordinatorChannelDependencies } from './channel/coordinator-channel.js';
import { E2eChannel, type E2eChannelDependencies } from './channel/e2e-channel.js';
import type { JobChannel, JobResponse, JobTerms } from './channel/job-channel.js';
import type { ConstraintCompiler } from './constraint/constraint-compiler.js';
import { JobError } from './job-error.js';
import type { ModelLease } from './model-lease.js';
import { type PreparedRequest, prepareRequest } from './prepared-request.js';
import { requestFault } from './request-fault.js';
import type { SealingKey } from './sealing-keys.js';

/** Milliseconds for a cancelled stream to send and sign its text so far. */
const CLOSE_TIMEOUT_MS = 5000;
/** Milliseconds from the start of the job to the last request frame. */
const BODY_TIMEOUT_MS = 30_000;
const PING_AFTER_MS = 10_000;
/** Interval of progress messages: well below the coordinator's stall timeout (`JOB_TIMINGS.stallMs`). */
const PROGRESS_EVERY_MS = 3000;

export interface JobDependencies extends CoordinatorChannelDependencies, E2eChannelDependencies {
  send(message: ProviderMessage): void;
  readonly enclave: CoordinatorChannelDependencies['enclave'] & E2eChannelDependencies['enclave'];
  readonly constraints: Pick<ConstraintCompiler, 'compile'>;
  /** Resolves when the model is loaded. Throws {@link JobError}, or the signal's reason. */
  readonly lease: (model: string, signal: AbortSignal) => Promise<ModelLease>;
  /** Silence after which a stream sends a ping, in milliseconds. Default: 10 s. */
  readonly pingAfterMs?: number;
  /** Time for a cancelled stream to send and sign its text so far, in milliseconds. Default: 5 s. */
  readonly closeTimeoutMs?: number;
  /** Interval of progress messages to the coordinator, in milliseconds. Default: 3 s. */
  readonly progressEveryMs?: number;
}

export type JobEnd =
  | { readonly kind: 'completed'; readonly summary: AnswerSummary }
  /** In end-to-end mode: the client got a sealed error that blames its request. */
  | { readonly kind: 'refused'; readonly code: ErrorCode }
  | { readonly kind: 'failed'; readonly failure: JobFailure; readonly cause?: unknown };

export class Job {
  /** Aborted to fail the job, with the error as the reason. */
  readonly #abort = new AbortController();
  readonly #closing = new AbortController();
  #closeTimer: NodeJS.Timeout | null = null;
  readonly #channel: JobChannel;
  /** Resolves when the request is complete and opened. */
  readonly #request: Promise<void>;
  #resolveRequest: () => void = () => {};
  #rejectRequest: (error: unknown) => void = () => {};
  #response: JobResponse | null = null;
  /** Credit granted before the response is open. */
  #extraCredit = 0;
  /** Plaintext overwritten at the end of the job. */
  readonly #toErase: Uint8Array[] = [];

  /** Throws {@link JobError} `unsealing_failed` if the encapsulated key of a plain-mode message is malformed. */
  constructor(
    private readonly message: JobMessage,
    key: SealingKey,
    private readonly deps: JobDependencies,
  ) {
    const { e2e } = message;
    this.#channel = e2e === undefined ? new CoordinatorChannel(message, key, deps) : new E2eChannel({ ...message, e2e }, key, deps);
    this.#request = new Promise((resolve, reject) => {
      this.#resolveRequest = resolve;
      this.#rejectRequest = reject;
    });
    // `run` reports the rejection. Without this handler, one before `run` would end the process.
    this.#request.catch(() => {});
  }

  get context(): JobContext {
    return this.message.context;
  }

  /** Adds a request frame. A malformed frame fails the job. */
  acceptFrame(frame: Frame): void {
    try {
      if (this.#channel.accept(frame)) this.#resolveRequest();
    } catch (error) {
      const failure = error instanceof JobError ? error : new JobError('internal');
      this.#rejectRequest(failure);
      this.#abort.abort(failure);
    }
  }

  grant(bytes: number): void {
    if (this.#response === null) this.#extraCredit += bytes;
    else this.#response.grant(bytes);
  }

  /** Ends the job early: a stream with output is signed as it is, other jobs fail with `cancelled`. */
  cancel(): void {
    if (this.context.stream && this.hasOutput) {
      this.#closing.abort();
      // Ends the job even if the coordinator never grants more credit.
      this.#closeTimer ??= setTimeout(() => this.abort(), this.deps.closeTimeoutMs ?? CLOSE_TIMEOUT_MS);
    } else this.abort();
  }

  /** Whether `job_accepted` was sent: the request is valid, or its sealed error is being sent. */
  get isAccepted(): boolean {
    return this.#response !== null;
  }

  /** Fails the job with `cancelled`. */
  abort(): void {
    this.#stop(new JobError('cancelled'));
  }

  /** Whether a part of the answer was written, so that no other provider can take over. */
  get hasOutput(): boolean {
    return (this.#response?.written ?? 0) > 0;
  }

  /** Fails a job without output with `code`, so that another provider can run it; a job with output with `cancelled`. */
  handBack(code: 'draining' | 'away' | 'busy'): void {
    this.#stop(new JobError(this.hasOutput ? 'cancelled' : code));
  }

  #stop(reason: JobError): void {
    this.#abort.abort(reason);
    this.#rejectRequest(reason);
  }

  /** Runs the job to its end and reports to the coordinator. Never rejects. */
  async run(): Promise<JobEnd> {
    const { job_id } = this.context;
    try {
      return await this.#run();
    } catch (error) {
      const failure = this.#channel.reportedFailure(error instanceof JobError ? error.failure : { code: 'internal' });
      this.#abort.abort(error);
      this.deps.send({ type: 'job_failed', job_id, failure });
      return { kind: 'failed', failure, ...(error instanceof JobError ? {} : { cause: error }) };
    } finally {
      if (this.#closeTimer !== null) clearTimeout(this.#closeTimer);
      for (const bytes of this.#toErase.splice(0)) bytes.fill(0);
      this.#response?.erase();
      this.#channel.erase();
    }
  }

  async #run(): Promise<JobEnd> {
    await this.#requestWithinLimit();
    const startedAt = Date.now();
    try {
      const terms = this.#channel.terms();
      const prepared = await prepareRequest(terms.parsed, terms.cacheScope, this.deps.constraints, this.#abort.signal);
      const response = this.#accept();
      const { summary, identity } = await this.#answer(prepared, terms, response);
      this.deps.send(await response.finish({ summary, identity, startedAt }));
      return { kind: 'completed', summary };
    } catch (error) {
      const { refuse } = this.#channel;
      const fault = refuse === null || this.hasOutput ? null : requestFault(error);
      if (refuse === null || fault === null) throw error;
      this.#accept();
      this.deps.send(await refuse(fault, startedAt));
      return { kind: 'refused', code: fault.code };
    }
  }

  /** Reports the job as accepted and opens its response, once. */
  #accept(): JobResponse {
    if (this.#response !== null) return this.#response;
    this.deps.send({ type: 'job_accepted', job_id: this.context.job_id });
    this.#response = this.#channel.openResponse(this.message.credit + this.#extraCredit, this.#abort.signal);
    return this.#response;
  }

  async #answer(
    prepared: PreparedRequest,
    { responseId, requestBytes, overrides, cacheScope }: JobTerms,
    response: JobResponse,
  ): Promise<{ readonly summary: AnswerSummary; readonly identity: ModelIdentity }> {
    const { context, deps } = this;
    const { signal } = this.#abort;
    const progress = this.#reportProgress();
    let lease: ModelLease | null = null;
    try {
      lease = await deps.lease(context.model, signal);
      const model = lease;
      const { identity } = model;
      const shared = {
        responseMetadata: { responseId, created: context.created, model: context.model, ...fingerprintOf(model) },
        requestBytes,
        write: (text: string) => response.write(text),
        signal,
      };
      if (prepared.kind === 'embeddings') {
        const watched = { ...model, embed: (request: EmbeddingRequest) => progress.watch(model.embed(request)) };
        return { identity, summary: await answerEmbeddings({ ...shared, parsed: prepared, model: watched }) };
      }
      if (prepared.kind === 'images') {
        const summary = await answerImages({
          ...shared,
          parsed: prepared,
          overrides,
          model: { ...model, generateImages: (request) => progress.watch(model.generateImages(request)) },
          writeImages: (images, body) => response.writeImages(images, body),
          eraseLater: (bytes) => void this.#toErase.push(bytes),
        });
        return { identity, summary };
      }
      if (model.embedding !== null || model.image !== null) throw new JobError('unsupported', { param: 'model' });
      const summary = await answerText({
        parsed: prepared,
        maxTokens: Math.floor(context.max_tokens / prepared.request.choices),
        cacheScope,
        thinkTags: model.thinkTags,
        thinks: model.thinks,
        maxImageTokens: model.maxImageTokens,
        generate: (request) => progress.watch(model.generate(request)),
        pingAfterMs: deps.pingAfterMs ?? PING_AFTER_MS,
        closing: this.#closing.signal,
        ...shared,
      });
      return { identity, summary };
    } finally {
      progress.end();
      lease?.release();
    }
  }

  /** Reports progress at intervals, so that a long prompt or a loading model does not exceed the coordinator's stall timeout. */
  #reportProgress() {
    const { deps, context } = this;
    let watched: { readonly workCount: number } | null = null;
    let seen = 0;
    let seenWritten = 0;
    const timer = setInterval(() => {
      const workCount = watched?.workCount ?? 0;
      const written = this.#response?.written ?? 0;
      // Response frames show progress themselves.
      const isSilent = written === seenWritten;
      seenWritten = written;
      // Nothing is watched while the model loads.
      if (watched === null || (workCount > seen && isSilent)) deps.send({ type: 'job_progress', job_id: context.job_id });
      seen = workCount;
    }, deps.progressEveryMs ?? PROGRESS_EVERY_MS);
    return {
      watch: <Work extends { readonly workCount: number }>(started: Work): Work => {
        watched = started;
        return started;
      },
      end: (): void => clearInterval(timer),
    };
  }

  async #requestWithinLimit(): Promise<void> {
    const timer = setTimeout(() => this.#rejectRequest(new JobError('unsealing_failed')), BODY_TIMEOUT_MS);
    try {
      await this.#request;
    } finally {
      clearTimeout(timer);
    }
  }
}

function fingerprintOf({ systemFingerprint }: ModelLease): Pick<ResponseMetadata, 'systemFingerprint'> {
  return systemFingerprint === undefined ? {} : { systemFingerprint };
}
