/**
 * One job from its first message to `job_completed` or `job_failed`, of which exactly one is sent. Collects and opens the sealed body,
 * answers the request, has the answer signed, and erases plaintext at the end.
 */
import type { Enclave, ReceiptDraft } from '@inference/enclave';
import type { ResponseMetadata } from '@inference/formats';
import { type Frame, fromBase64, type JobContext, type JobFailure, type JobMessage, type ProviderMessage } from '@inference/protocol';
import { RequestOpener, responseHash, SealingError } from '@inference/protocol/crypto';
import type { EmbeddingRequest } from '../engine/messages.js';
import { answerEmbeddings } from './answer/answer-embeddings.js';
import { answerImages } from './answer/answer-images.js';
import { type Answered, answer } from './answer/answer-text.js';
import { computedBy, type ModelIdentity } from './answer/computed-by.js';
import type { ConstraintCompiler } from './constraint/constraint-compiler.js';
import { JobError } from './job-error.js';
import type { ModelLease } from './model-lease.js';
import { type Opened, readRequest } from './opened-request.js';
import { type FrameSink, ResponseFrames } from './response-frames.js';
import type { SealingKey } from './sealing-keys.js';

/** Time from a cancel to the signed end of the text written so far, in milliseconds. */
const CLOSE_TIMEOUT_MS = 5000;
/** From the job message to the last request frame, in milliseconds. */
const BODY_TIMEOUT_MS = 30_000;
const PING_AFTER_MS = 10_000;
/** Well below the coordinator's stall timeout. */
const PROGRESS_EVERY_MS = 3000;

export interface JobDependencies extends FrameSink {
  send(message: ProviderMessage): void;
  readonly enclave: Pick<Enclave, 'signResponse'>;
  readonly constraints: Pick<ConstraintCompiler, 'compile'>;
  /** Waits until a model is loaded. Throws {@link JobError}, or the signal's reason. */
  readonly lease: (model: string, signal: AbortSignal) => Promise<ModelLease>;
  /** Receipt version that the coordinator accepts. Default: 1. */
  readonly receiptVersion?: 1 | 2;
  /** Silence after which a stream sends a ping, in milliseconds. Default: 10 s. */
  readonly pingAfterMs?: number;
  /** Time for a cancelled stream to send the rest, in milliseconds. Default: 5 s. */
  readonly closeTimeoutMs?: number;
  /** Interval of progress messages to the coordinator, in milliseconds. Default: 3 s. */
  readonly progressEveryMs?: number;
}

export type JobEnd =
  | { readonly kind: 'completed'; readonly answered: Answered }
  | { readonly kind: 'failed'; readonly failure: JobFailure; readonly cause?: unknown };

export class Job {
  readonly #abort = new AbortController();
  readonly #closing = new AbortController();
  #closeTimer: NodeJS.Timeout | null = null;
  readonly #opener: RequestOpener;
  readonly #body: Promise<Uint8Array>;
  #deliver: (body: Uint8Array) => void = () => {};
  #refuse: (error: unknown) => void = () => {};
  #frames: ResponseFrames | null = null;
  #extraCredit = 0;
  /** Plaintext overwritten at the end of the job. */
  readonly #toErase: Uint8Array[] = [];

  /** Throws {@link JobError} `unsealing_failed` when the encapsulated key is malformed. */
  constructor(
    private readonly message: JobMessage,
    key: SealingKey,
    private readonly deps: JobDependencies,
  ) {
    try {
      this.#opener = new RequestOpener(message.context, fromBase64(message.enc), key.pair, message.request_bytes);
    } catch {
      throw new JobError('unsealing_failed');
    }
    this.#body = new Promise((resolve, reject) => {
      this.#deliver = resolve;
      this.#refuse = reject;
    });
    // `run` reports the rejection; an abandoned job must not end the process.
    this.#body.catch(() => {});
  }

  get context(): JobContext {
    return this.message.context;
  }

  frame(frame: Frame): void {
    try {
      const body = this.#opener.accept(frame);
      if (body !== null) this.#deliver(body);
    } catch (error) {
      const failure = new JobError(error instanceof SealingError ? 'unsealing_failed' : 'internal');
      this.#refuse(failure);
      this.#abort.abort(failure);
    }
  }

  grant(bytes: number): void {
    if (this.#frames === null) this.#extraCredit += bytes;
    else this.#frames.grant(bytes);
  }

  /**
   * Handles a cancel by the client; decoding stops within one batch. A stream that has written something is ended and signed, so
   * the delivered part can be charged. Other jobs fail with `cancelled`.
   */
  cancel(): void {
    if (this.context.stream && this.#frames !== null && this.#frames.written > 0) {
      this.#closing.abort();
      // Ends the job even if the coordinator never grants more credit.
      this.#closeTimer ??= setTimeout(() => this.giveUp(), this.deps.closeTimeoutMs ?? CLOSE_TIMEOUT_MS);
    } else this.giveUp();
  }

  /** Whether the body was opened and passed on to the engine. */
  get accepted(): boolean {
    return this.#frames !== null;
  }

  /** Stops decoding within one batch; the job fails with `cancelled`. */
  giveUp(): void {
    this.#stop(new JobError('cancelled'));
  }

  /** Whether a part of the answer is sent, so that no other provider can take over. */
  get begun(): boolean {
    return (this.#frames?.written ?? 0) > 0;
  }

  /** Like {@link giveUp}; a job without output is handed back with `code`, for another provider. */
  leave(code: 'draining' | 'away' | 'busy'): void {
    this.#stop(new JobError(this.begun ? 'cancelled' : code));
  }

  #stop(reason: JobError): void {
    this.#abort.abort(reason);
    this.#refuse(reason);
  }

  /** Runs the job to its end and reports to the coordinator. Never rejects. */
  async run(): Promise<JobEnd> {
    const { job_id } = this.context;
    try {
      const answered = await this.#run();
      return { kind: 'completed', answered };
    } catch (error) {
      const failure = error instanceof JobError ? error.failure : { code: 'internal' as const };
      this.#abort.abort(error);
      this.deps.send({ type: 'job_failed', job_id, failure });
      return { kind: 'failed', failure, ...(error instanceof JobError ? {} : { cause: error }) };
    } finally {
      if (this.#closeTimer !== null) clearTimeout(this.#closeTimer);
      for (const bytes of this.#toErase.splice(0)) bytes.fill(0);
      this.#frames?.erase();
      this.#opener.erase();
    }
  }

  async #run(): Promise<Answered> {
    const { context, deps } = this;
    const { signal } = this.#abort;
    const body = await this.#bodyInTime();
    this.#toErase.push(body);
    const opened = await readRequest(context, body, deps.constraints, signal);
    deps.send({ type: 'job_accepted', job_id: context.job_id });
    const startedAt = Date.now();
    const hash = responseHash();
    const frames = new ResponseFrames(this.#opener.responseSealer(), hash, deps, this.message.credit + this.#extraCredit, signal);
    this.#frames = frames;
    const { answered, identity } = await this.#answer(opened, frames);
    await frames.finish();
    await this.#sign(answered, identity, hash.digestHex(), startedAt);
    return answered;
  }

  async #answer(opened: Opened, frames: ResponseFrames): Promise<{ readonly answered: Answered; readonly identity: ModelIdentity }> {
    const { context, deps } = this;
    const { signal } = this.#abort;
    const work = this.#reportWork();
    let lease: ModelLease | null = null;
    try {
      lease = await deps.lease(context.model, signal);
      const model = lease;
      const { identity } = model;
      const shared = {
        responseMetadata: { responseId: context.response_id, created: context.created, model: context.model, ...fingerprintOf(model) },
        requestBytes: this.message.request_bytes,
        write: (text: string) => frames.write(text),
        signal,
      };
      if (opened.kind === 'embeddings') {
        const watched = { ...model, embed: (request: EmbeddingRequest) => work.watch(model.embed(request)) };
        return { identity, answered: await answerEmbeddings({ ...shared, opened, model: watched }) };
      }
      if (opened.kind === 'images') {
        const answered = await answerImages({
          ...shared,
          opened,
          overrides: context.overrides,
          model: { ...model, generateImages: (request) => work.watch(model.generateImages(request)) },
          writeUnsigned: (bytes) => frames.writeUnsigned(bytes),
          eraseLater: (bytes) => void this.#toErase.push(bytes),
        });
        return { identity, answered };
      }
      if (model.embedding !== null || model.image !== null) throw new JobError('unsupported', { param: 'model' });
      const answered = await answer({
        ...shared,
        opened,
        maxTokens: context.max_tokens,
        cacheScope: context.cache_scope ?? null,
        thinkTags: model.thinkTags,
        thinks: model.thinks,
        generate: (request) => work.watch(model.generate(request)),
        pingAfterMs: deps.pingAfterMs ?? PING_AFTER_MS,
        closing: this.#closing.signal,
      });
      return { identity, answered };
    } finally {
      work.end();
      lease?.release();
    }
  }

  /** Reports progress at intervals, so that a long prompt or a loading model does not exhaust the coordinator's stall timeout. */
  #reportWork() {
    const { deps, context } = this;
    let watched: { readonly workCount: number } | null = null;
    let seen = 0;
    let seenWritten = 0;
    const timer = setInterval(() => {
      const workCount = watched?.workCount ?? 0;
      const written = this.#frames?.written ?? 0;
      // Frames themselves show progress.
      const isSilent = written === seenWritten;
      seenWritten = written;
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

  async #bodyInTime(): Promise<Uint8Array> {
    const timer = setTimeout(() => this.#refuse(new JobError('unsealing_failed')), BODY_TIMEOUT_MS);
    try {
      return await this.#body;
    } finally {
      clearTimeout(timer);
    }
  }

  async #sign(answered: Answered, identity: ModelIdentity, responseSha256: string, startedAt: number): Promise<void> {
    const { context, deps } = this;
    const version = deps.receiptVersion ?? 1;
    const draft: ReceiptDraft = {
      v: version,
      ...(version === 1 ? {} : computedBy(identity, answered.computation)),
      job_id: context.job_id,
      model: context.model,
      endpoint: context.endpoint,
      request_sha256: context.request_sha256,
      overrides: context.overrides,
      response_sha256: responseSha256,
      ...(answered.imageSha256 === undefined ? {} : { image_sha256: [...answered.imageSha256] }),
      ...(context.client_nonce === undefined ? {} : { client_nonce: context.client_nonce }),
      usage: answered.usage,
      hidden_tokens: answered.hiddenTokens,
      finish_reason: answered.finishReason,
      started_at: startedAt,
      completed_at: Math.max(startedAt, Date.now()),
    };
    let signed: Awaited<ReturnType<Enclave['signResponse']>>;
    try {
      signed = await deps.enclave.signResponse(draft, this.#abort.signal);
    } catch {
      this.#abort.signal.throwIfAborted();
      throw new JobError('signing_failed');
    }
    deps.send({
      type: 'job_completed',
      job_id: context.job_id,
      response_sha256: responseSha256,
      signature: signed.signature,
      receipt: signed.receipt,
    });
  }
}

function fingerprintOf({ systemFingerprint }: ModelLease): Pick<ResponseMetadata, 'systemFingerprint'> {
  return systemFingerprint === undefined ? {} : { systemFingerprint };
}
