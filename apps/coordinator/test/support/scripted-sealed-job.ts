/** `ScriptedSealedJob`: end-to-end job of a `ScriptedProvider`. Opens the sealed request and seals the answer, step by step. */
import {
  concatBytes,
  type decodeFrame,
  type E2eAnswerHead,
  type E2eAnswerSealer,
  type E2eFinishReason,
  type E2ePart,
  type E2eReceipt,
  encodeE2eAnswerHead,
  encodeFrame,
  type JobCompleted,
  type JobContext,
  type JobFailure,
  type JobMessage,
  type OpenedE2eRequest,
  openE2eRequest,
  type Usage,
  utf8,
} from '@inference/protocol';
import { e2eKeyPair, nodeE2eCrypto, sha256, sha256Hex } from '@inference/protocol/crypto';
import type { ScriptedProvider } from './scripted-provider.js';

interface CompletionChange {
  readonly receipt?: (receipt: E2eReceipt) => E2eReceipt;
  readonly message?: (message: JobCompleted) => JobCompleted;
  readonly finishReason?: E2eFinishReason;
}

const JSON_HEAD: E2eAnswerHead = { status: 200, content_type: 'application/json; charset=utf-8' };
const STREAM_HEAD: E2eAnswerHead = { status: 200, content_type: 'text/event-stream; charset=utf-8' };

export class ScriptedSealedJob {
  readonly provider: ScriptedProvider;
  readonly message: JobMessage;
  readonly context: JobContext;
  readonly startedAt = Date.now();
  #received: Uint8Array[] = [];
  #opened: OpenedE2eRequest | null = null;
  #sealer: E2eAnswerSealer | null = null;
  #seq = 0;
  readonly #body: Uint8Array[] = [];
  readonly #images: Uint8Array[] = [];
  tokens = 0;
  isOver = false;
  isCancelled = false;
  credit: number;

  constructor(provider: ScriptedProvider, message: JobMessage) {
    this.provider = provider;
    this.message = message;
    this.context = message.context;
    this.credit = message.credit;
  }

  get opened(): OpenedE2eRequest {
    if (this.#opened === null) throw new Error('the request is not complete');
    return this.#opened;
  }

  frame({ payload, final }: ReturnType<typeof decodeFrame>): void {
    this.#received.push(payload.slice());
    if (!final) return;
    this.provider.sealedJobs.set(this.context.job_id, this);
    const bytes = concatBytes(...this.#received);
    this.#received = [];
    try {
      this.#opened = openE2eRequest(nodeE2eCrypto, bytes, this.message.e2e?.recipient ?? 0, e2eKeyPair(this.provider.sealingKey));
    } catch {
      this.fail({ code: 'unsealing_failed' });
      return;
    }
    this.#sealer = this.opened.answerSealer();
    void this.provider.options.onSealedJob?.(this);
  }

  credited(bytes: number): void {
    this.credit += bytes;
  }

  /** Honest reaction to a cancel: signs what was sent of a stream, or reports `cancelled`. */
  cancel(): void {
    this.isCancelled = true;
    if (this.isOver) return;
    if (this.context.stream && this.#seq > 0) this.complete({ finishReason: 'cancelled' });
    else this.fail({ code: 'cancelled' });
  }

  accept(): void {
    this.provider.send({ type: 'job_accepted', job_id: this.context.job_id });
  }

  fail(failure: JobFailure): void {
    this.isOver = true;
    this.provider.send({ type: 'job_failed', job_id: this.context.job_id, failure });
  }

  /** Sends bytes as one response frame. */
  send(payload: Uint8Array, final = false): void {
    this.credit -= payload.length;
    const bytes = encodeFrame({ type: 'response', final, seq: this.#seq++, jobId: this.context.job_id, payload });
    this.provider.socket.send(bytes);
  }

  /** Accepts the job and sends nonce, head and content in one sealed frame. */
  begin(content: readonly (string | Uint8Array)[], head: E2eAnswerHead = this.context.stream ? STREAM_HEAD : JSON_HEAD): void {
    this.accept();
    const sealer = this.#answerSealer();
    this.send(concatBytes(sealer.start(), sealer.seal([encodeE2eAnswerHead(head), ...this.#parts(content)], this.#padding)));
  }

  /** Sends more content of a stream. */
  write(text: string): void {
    this.send(this.#answerSealer().seal(this.#parts([text]), this.#padding));
  }

  /** Sends the final frame with the proof (hash, signature and receipt), and reports completion. */
  complete(change: CompletionChange = {}): void {
    this.isOver = true;
    const sealer = this.#answerSealer();
    const sealedSha256 = sealer.sealedSha256();
    const { enclave } = this.provider;
    const responseSha256 = sha256Hex(concatBytes(...this.#body));
    const receipt = enclave.statement(
      'e2e-receipt',
      (change.receipt ?? ((same) => same))(this.#receipt(sealedSha256, change.finishReason ?? 'stop')),
    );
    this.send(sealer.finish({ response_hash: responseSha256, se_signature: enclave.signResponse(responseSha256), receipt }), true);
    const message: JobCompleted = {
      type: 'job_completed',
      job_id: this.context.job_id,
      response_sha256: sealedSha256,
      signature: enclave.signResponse(sealedSha256),
      receipt,
    };
    this.provider.send((change.message ?? ((same) => same))(message));
  }

  /** An honest answer: a stream of these words, or one JSON body. */
  answer(words: readonly string[] = ['Hello', ' there'], change: CompletionChange = {}): void {
    this.tokens = words.length;
    if (this.context.stream) {
      this.begin([]);
      for (const word of words) this.write(`data: ${JSON.stringify(word)}\n\n`);
    } else this.begin([JSON.stringify({ text: words.join('') })]);
    this.complete(change);
  }

  /** An honest answer with images. */
  answerImages(images: readonly Uint8Array[]): void {
    this.begin(['{"data":[]}', ...images]);
    this.complete();
  }

  /** Answers with a signed, sealed refusal. */
  refuse(status = 400): void {
    this.begin(['{"error":{"message":"messages is missing"}}'], { ...JSON_HEAD, status });
    this.complete({ finishReason: 'refused' });
  }

  get #padding(): 'stream' | 'padme' {
    return this.context.stream ? 'stream' : 'padme';
  }

  #answerSealer(): E2eAnswerSealer {
    if (this.#sealer === null) throw new Error('the request is not complete');
    return this.#sealer;
  }

  #parts(content: readonly (string | Uint8Array)[]): E2ePart[] {
    return content.map((part): E2ePart => {
      if (typeof part === 'string') {
        const bytes = utf8(part);
        this.#body.push(bytes);
        return { kind: 'body', bytes };
      }
      this.#images.push(part);
      return { kind: 'image', bytes: part };
    });
  }

  #usage(): Usage {
    const images = this.#images.length === 0 ? {} : { images: this.#images.length };
    return { prompt_tokens: 7, completion_tokens: this.tokens, total_tokens: 7 + this.tokens, ...images };
  }

  #receipt(sealedSha256: string, finishReason: E2eFinishReason): E2eReceipt {
    const { context, provider, opened } = this;
    const isRefusal = finishReason === 'refused';
    return {
      v: 1,
      job_id: context.job_id,
      provider_id: provider.providerId,
      se_key_sha256: sha256Hex(provider.enclave.publicKey),
      model: context.model,
      endpoint: context.endpoint,
      context_sha256: opened.contextSha256,
      sealed_request_sha256: opened.sealedRequestSha256,
      sealed_response_sha256: sealedSha256,
      request_commitment: opened.commitments.request(sha256(opened.body)),
      response_commitment: opened.commitments.response(sha256(concatBytes(...this.#body))),
      ...(this.#images.length === 0
        ? {}
        : { image_commitments: this.#images.map((image, index) => opened.commitments.image(index, sha256(image))) }),
      response_bytes: this.#answerSealer().responseBytes,
      ...(isRefusal ? {} : { usage: this.#usage(), engine: 'scripted 1' }),
      hidden_tokens: 0,
      finish_reason: finishReason,
      started_at: this.startedAt,
      completed_at: Date.now(),
    };
  }
}
