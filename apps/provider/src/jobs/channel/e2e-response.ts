/**
 * `E2eResponse`: the sealed answer of an end-to-end job. `E2eChannel` creates it.
 *
 * Padding hides the sizes of texts: unstreamed answers grow by up to 12 % (Padmé), stream frames to multiples of 512 bytes. Frames of
 * a stream are 50 ms apart unless much text is waiting, which hides the times of tokens.
 */
import type { E2eReceiptDraft, SignedE2eResponse } from '@inference/enclave';
import type { HttpError } from '@inference/formats';
import {
  concatBytes,
  E2E_PART_HEADER_BYTES,
  E2E_STREAM_PADDING_BYTES,
  type E2eAnswerHead,
  type E2eAnswerSealer,
  type E2ePart,
  encodeE2eAnswerHead,
  encodeFrame,
  type JobCompleted,
  type JobId,
  utf8,
} from '@inference/protocol';
import { responseHash } from '@inference/protocol/crypto';
import { computedBy } from '../answer/computed-by.js';
import { type FrameSink, ResponseFrames } from '../response-frames.js';
import type { FinishedAnswer, JobResponse } from './job-channel.js';

/** Milliseconds between two frames of a stream with less than `FLUSH_BYTES` of text. */
const FLUSH_EVERY_MS = 50;
/** Bytes of collected text at which a frame is sent without a wait. */
const FLUSH_BYTES = 64 * 1024;
/** Bytes of a stream frame besides the text: headers of the body part and of the padding part. */
const FRAME_OVERHEAD_BYTES = 2 * E2E_PART_HEADER_BYTES;

/** Hashes and size of a finished response, without the proof (signature and receipt) that ends it. */
export interface SealedContent {
  /** Lowercase hex SHA-256 of the plaintext body. */
  readonly responseSha256: string;
  /** Lowercase hex SHA-256 of everything sent before the proof. */
  readonly sealedSha256: string;
  /** Bytes of body and image parts. */
  readonly responseBytes: number;
}

/** Receipt members that depend on how the job ended. */
export type ReceiptEnd = Pick<E2eReceiptDraft, 'finish_reason' | 'hidden_tokens' | 'started_at'> &
  Partial<Pick<E2eReceiptDraft, 'usage' | 'engine' | 'weights_sha256' | 'template_sha256' | 'sampling' | 'image_commitments'>>;

interface E2eResponseOptions {
  readonly jobId: JobId;
  readonly stream: boolean;
  readonly head: E2eAnswerHead;
  readonly sealer: E2eAnswerSealer;
  /** The receipt's commitment to an image. `sha256`: lowercase hex. */
  readonly commitImage: (index: number, sha256: string) => string;
  readonly sign: (content: SealedContent, end: ReceiptEnd) => Promise<SignedE2eResponse>;
  readonly sink: FrameSink;
  /** Bytes of the sealed answer that may be sent before `grant`. */
  readonly credit: number;
  readonly signal: AbortSignal;
}

export class E2eResponse implements JobResponse {
  readonly #frames: ResponseFrames;
  readonly #hash = responseHash();
  /** Null once sent. */
  #head: E2eAnswerHead | null;
  /** Collected text that is not sealed yet. */
  #pending: Uint8Array[] = [];
  #pendingBytes = 0;
  #written = 0;
  #flushedAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | null = null;
  /** Whether the oldest collected text has waited for one interval. At the next, it is sent even if it fills no frame. */
  #isOverdue = false;
  /** The latest flush. Settles when the frame buffer has room again. */
  #flushed: Promise<void> = Promise.resolve();

  constructor(private readonly options: E2eResponseOptions) {
    const { jobId, sink, credit, signal, head } = options;
    let seq = 0;
    // The parts are already sealed for the client, so the frames to the coordinator are not sealed again.
    const framer = { seal: (payload: Uint8Array, final: boolean) => encodeFrame({ type: 'response', final, seq: seq++, jobId, payload }) };
    this.#frames = new ResponseFrames(framer, null, sink, credit, signal);
    this.#head = head;
  }

  get written(): number {
    return this.#written;
  }

  grant(bytes: number): void {
    this.#frames.grant(bytes);
  }

  /** Adds text. Resolves when the reader has room for more. Rejects with the signal's reason if the job ends meanwhile. */
  async write(text: string): Promise<void> {
    if (text === '') return;
    await this.#flushed;
    const bytes = utf8(text);
    this.#hash.update(bytes);
    this.#written += bytes.length;
    this.#pending.push(bytes);
    this.#pendingBytes += bytes.length;
    if (!this.options.stream) return;
    const waitMs = this.#flushedAt + FLUSH_EVERY_MS - performance.now();
    if ((waitMs <= 0 && this.#timer === null) || this.#pendingBytes >= FLUSH_BYTES) await this.#flush();
    else this.#timer ??= setTimeout(() => this.#intervalEnded(), Math.max(0, waitMs));
  }

  /** Sends the text that fills frames. The rest waits one more interval, because padding at every interval would double the bytes. */
  #intervalEnded(): void {
    this.#timer = null;
    const frameCount = Math.floor((this.#pendingBytes + FRAME_OVERHEAD_BYTES) / E2E_STREAM_PADDING_BYTES);
    const fullBytes = frameCount * E2E_STREAM_PADDING_BYTES - FRAME_OVERHEAD_BYTES;
    let flushed = Promise.resolve();
    if (frameCount > 0) flushed = this.#flush(fullBytes);
    else if (this.#isOverdue) flushed = this.#flush();
    const waitForMore = (): void => {
      if (this.#pendingBytes === 0) return;
      this.#isOverdue = true;
      this.#timer ??= setTimeout(() => this.#intervalEnded(), FLUSH_EVERY_MS);
    };
    flushed.then(waitForMore, () => {});
  }

  /** In this mode, the body embeds every image (`b64_json`), so `images` is empty. */
  async writeImages(images: readonly Uint8Array[], body: string): Promise<void> {
    if (images.length > 0) throw new RangeError('an end-to-end answer links no images');
    await this.write(body);
  }

  finish({ summary, identity, startedAt }: FinishedAnswer): Promise<JobCompleted> {
    return this.#finish({
      ...computedBy(identity, summary.computation),
      ...(summary.imageSha256 === undefined
        ? {}
        : { image_commitments: summary.imageSha256.map((sha256, index) => this.options.commitImage(index, sha256)) }),
      usage: summary.usage,
      hidden_tokens: summary.hiddenTokens,
      finish_reason: summary.finishReason,
      started_at: startedAt,
    });
  }

  /** Answers with an error. Throws if the answer's head has been sent. */
  async refuse({ status, headers, body }: HttpError, startedAt: number): Promise<JobCompleted> {
    if (this.#head === null) throw new Error('the answer has begun');
    const { 'content-type': contentType = 'application/json', ...rest } = headers;
    const { headers: _, ...head } = this.#head;
    this.#head = { ...head, status, content_type: contentType, ...(Object.keys(rest).length === 0 ? {} : { headers: rest }) };
    await this.write(body);
    return this.#finish({ finish_reason: 'refused', hidden_tokens: 0, started_at: startedAt });
  }

  async #finish(end: ReceiptEnd): Promise<JobCompleted> {
    await this.#flushed;
    if (this.#pendingBytes > 0 || this.#head !== null) await this.#flush();
    const { jobId, sealer, sign } = this.options;
    const responseSha256 = this.#hash.digestHex();
    const sealedSha256 = sealer.sealedSha256();
    const { signature, sealedSignature, receipt } = await sign({ responseSha256, sealedSha256, responseBytes: sealer.responseBytes }, end);
    await this.#frames.writeUnsigned(sealer.finish({ response_hash: responseSha256, se_signature: signature, receipt }));
    await this.#frames.finish();
    return { type: 'job_completed', job_id: jobId, response_sha256: sealedSha256, signature: sealedSignature, receipt };
  }

  /** Ends the response, and overwrites unsent plaintext. */
  erase(): void {
    this.#stopTimer();
    for (const bytes of this.#pending.splice(0)) bytes.fill(0);
    this.#pendingBytes = 0;
    this.#frames.erase();
  }

  /** Seals and sends collected text. Writers wait for the previous flush, and its rejection reaches the next writer. */
  #flush(bodyBytes = this.#pendingBytes): Promise<void> {
    this.#stopTimer();
    this.#isOverdue = false;
    this.#flushedAt = performance.now();
    this.#flushed = this.#frames.writeUnsigned(this.#sealPending(bodyBytes));
    return this.#flushed;
  }

  /** Seals the first `bodyBytes` bytes of the collected text, the first time with the answer's head. */
  #sealPending(bodyBytes: number): Uint8Array {
    const { sealer, stream } = this.options;
    const parts: E2ePart[] = [];
    const isFirst = this.#head !== null;
    if (this.#head !== null) parts.push(encodeE2eAnswerHead(this.#head));
    this.#head = null;
    const collected = concatBytes(...this.#pending);
    for (const bytes of this.#pending.splice(0)) bytes.fill(0);
    const body = collected.subarray(0, bodyBytes);
    if (bodyBytes < collected.length) this.#pending.push(collected.slice(bodyBytes));
    this.#pendingBytes = collected.length - body.length;
    if (body.length > 0) parts.push({ kind: 'body', bytes: body });
    const responseNonce = isFirst ? sealer.start() : new Uint8Array(0);
    const sealed = sealer.seal(parts, stream ? 'stream' : 'padme');
    collected.fill(0);
    return concatBytes(responseNonce, sealed);
  }

  #stopTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}
