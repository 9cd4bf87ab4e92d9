/**
 * One job from its first message to `job_completed` or `job_failed`: collects and opens the sealed body, answers it, has
 * the answer signed. Exactly one of the two is sent, and nothing of the job stays behind.
 */
import type { Enclave, ReceiptDraft } from '@inference/enclave';
import { type Frame, fromBase64, type JobContext, type JobFailure, type JobMessage, type ProviderMessage } from '@inference/protocol';
import { RequestOpener, responseHash, SealingError } from '@inference/protocol/crypto';
import type { Generation } from '../engine/generation.js';
import type { GenerationRequest } from '../engine/messages.js';
import type { ThinkTags } from '../models/think-tags.js';
import { type Answered, answer } from './answer.js';
import { JobError } from './job-error.js';
import { readRequest } from './opened-request.js';
import { type FrameSink, ResponseFrames } from './response-frames.js';
import type { SealingKey } from './sealing-keys.js';

/** From the job message to the last request frame, in milliseconds. */
const BODY_TIMEOUT_MS = 30_000;
const PING_AFTER_MS = 10_000;

export interface JobSurroundings extends FrameSink {
  send(message: ProviderMessage): void;
  readonly enclave: Pick<Enclave, 'signResponse'>;
  readonly generate: (request: GenerationRequest) => Generation;
  readonly thinkTags: ThinkTags | null;
  /** Silence after which a stream shows a sign of life, in milliseconds. Default: 10 s. */
  readonly pingAfterMs?: number;
}

export type JobEnd =
  | { readonly kind: 'completed'; readonly answered: Answered }
  | { readonly kind: 'failed'; readonly failure: JobFailure; readonly cause?: unknown };

export class Job {
  readonly #abort = new AbortController();
  readonly #opener: RequestOpener;
  readonly #body: Promise<Uint8Array>;
  #deliver: (body: Uint8Array) => void = () => {};
  #refuse: (error: unknown) => void = () => {};
  #frames: ResponseFrames | null = null;
  #extraCredit = 0;

  /** Throws {@link JobError} `unsealing_failed` when the encapsulated key is malformed. */
  constructor(
    private readonly message: JobMessage,
    key: SealingKey,
    private readonly surroundings: JobSurroundings,
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
    // Whoever runs the job hears of it; a job that is abandoned before must not end the process.
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

  /** Stops decoding within one batch; the job then fails with `cancelled`. */
  cancel(): void {
    const reason = new JobError('cancelled');
    this.#abort.abort(reason);
    this.#refuse(reason);
  }

  /** Runs the job to its end and tells the coordinator. Never rejects. */
  async run(): Promise<JobEnd> {
    const { job_id } = this.context;
    try {
      const answered = await this.#run();
      return { kind: 'completed', answered };
    } catch (error) {
      const failure = error instanceof JobError ? error.failure : { code: 'internal' as const };
      this.#abort.abort(error);
      this.surroundings.send({ type: 'job_failed', job_id, failure });
      return { kind: 'failed', failure, ...(error instanceof JobError ? {} : { cause: error }) };
    }
  }

  async #run(): Promise<Answered> {
    const { context, surroundings } = this;
    const { signal } = this.#abort;
    const opened = readRequest(context, await this.#bodyInTime());
    surroundings.send({ type: 'job_accepted', job_id: context.job_id });
    const startedAt = Date.now();
    const hash = responseHash();
    const frames = new ResponseFrames(this.#opener.responseSealer(), hash, surroundings, this.message.credit + this.#extraCredit, signal);
    this.#frames = frames;
    const answered = await answer({
      opened,
      envelope: { responseId: context.response_id, created: context.created, model: context.model },
      maxTokens: context.max_tokens,
      thinkTags: surroundings.thinkTags,
      generate: surroundings.generate,
      pingAfterMs: surroundings.pingAfterMs ?? PING_AFTER_MS,
      write: (text) => frames.write(text),
      signal,
    });
    await frames.finish();
    await this.#sign(answered, hash.digestHex(), startedAt);
    return answered;
  }

  async #bodyInTime(): Promise<Uint8Array> {
    const timer = setTimeout(() => this.#refuse(new JobError('unsealing_failed')), BODY_TIMEOUT_MS);
    try {
      return await this.#body;
    } finally {
      clearTimeout(timer);
    }
  }

  async #sign(answered: Answered, responseSha256: string, startedAt: number): Promise<void> {
    const { context, surroundings } = this;
    const draft: ReceiptDraft = {
      v: 1,
      job_id: context.job_id,
      model: context.model,
      endpoint: context.endpoint,
      request_sha256: context.request_sha256,
      overrides: context.overrides,
      response_sha256: responseSha256,
      ...(context.client_nonce === undefined ? {} : { client_nonce: context.client_nonce }),
      usage: answered.usage,
      hidden_tokens: answered.hiddenTokens,
      finish_reason: answered.finishReason,
      started_at: startedAt,
      completed_at: Math.max(startedAt, Date.now()),
    };
    let signed: Awaited<ReturnType<Enclave['signResponse']>>;
    try {
      signed = await surroundings.enclave.signResponse(draft, this.#abort.signal);
    } catch {
      this.#abort.signal.throwIfAborted();
      throw new JobError('signing_failed');
    }
    surroundings.send({
      type: 'job_completed',
      job_id: context.job_id,
      response_sha256: responseSha256,
      signature: signed.signature,
      receipt: signed.receipt,
    });
  }
}
