/**
 * Delivers a stream, unchanged. Bytes of one turn of the event loop go out in one write, one window at a time. Credit returns only
 * for bytes taken by the client. SSE comments fill silence between two events.
 */
import {
  type AnswerFormat,
  type ApiError,
  type ResponseMetadata,
  type SignatureForm,
  type SignedParts,
  SSE_COMMENT,
  type TextFormat,
} from '@inference/formats';
import type { ProviderConnection } from '../../providers/provider-connection.js';
import type { JobObserver } from '../job-observer.js';
import type { JobTimings } from '../job-timings.js';
import { CLIENT_WINDOW_BYTES, type ClientConnection } from './client-connection.js';
import type { Delivery } from './delivery.js';
import { ignoredHeader, providerHeaders, signatureHeaders } from './response-headers.js';

export interface StreamOptions {
  readonly client: ClientConnection;
  readonly format: Pick<TextFormat, 'error'>;
  readonly answer: AnswerFormat;
  readonly responseMetadata: ResponseMetadata;
  readonly jobId: string;
  readonly signatureForm: SignatureForm;
  /** Members of the request without effect. */
  readonly ignored: readonly string[];
  readonly requestId: string;
  /** Maximum content bytes; more are a provider's fault. */
  readonly maxBytes: number;
  /** The client sent `TE: trailers`. */
  readonly trailers: boolean;
  readonly timings: Pick<JobTimings, 'keepAliveMs'>;
  readonly observer: JobObserver;
  /** When the request had come (`performance.now`). */
  readonly startedAt: number;
}

const NEW_LINE = 0x0a;

export class StreamDelivery implements Delivery {
  readonly #options: StreamOptions;
  #provider: ProviderConnection | null = null;
  #grant: (bytes: number) => void = () => {};
  #isCommitted = false;
  #isStalled = false;
  #isOver = false;
  #written = 0;
  #pushed = 0;
  #pending: Uint8Array[] = [];
  /** Arrival time of the first pending byte; null while the client is slow. */
  #oldestAt: number | null = null;
  #flush: NodeJS.Immediate | null = null;
  /** Bytes written while the client is slow, with credit not returned yet. */
  #undrained = 0;
  #keepAlive: NodeJS.Timeout | null = null;
  #lastByte = NEW_LINE;
  #secondLastByte = NEW_LINE;

  constructor(options: StreamOptions) {
    this.#options = options;
    options.client.signal.addEventListener('abort', () => this.#finish());
  }

  get isCommitted(): boolean {
    return this.#isCommitted;
  }

  get isStalled(): boolean {
    return this.#isStalled;
  }

  get delivered(): number {
    return Math.max(0, this.#written - this.#options.client.undeliveredBytes);
  }

  begin(provider: ProviderConnection, grant: (bytes: number) => void): void {
    this.#provider = provider;
    this.#grant = grant;
  }

  commit(): void {
    this.#commit();
    if (!this.#isOver) this.#options.client.response.flushHeaders();
  }

  push(bytes: Uint8Array, receivedAt: number): boolean {
    if (bytes.length === 0 || this.#isOver) return true;
    this.#pushed += bytes.length;
    if (this.#pushed > this.#options.maxBytes) return false;
    this.#commit();
    if (!this.#isStalled) this.#oldestAt ??= receivedAt;
    this.#pending.push(bytes);
    this.#flush ??= setImmediate(() => this.#writePending());
    return true;
  }

  /** Any content has committed the stream. */
  withdraw(): void {}

  deliver(signed: SignedParts): void {
    const { client, answer, responseMetadata, signatureForm, trailers } = this.#options;
    this.#commit();
    this.#writePending(true);
    if (!this.#isOver) {
      if (trailers) client.response.addTrailers(signatureHeaders(signed));
      client.end(answer.signatureEvent(responseMetadata, signed, signatureForm));
    }
    this.#finish();
  }

  fail(error: ApiError): void {
    const { client, format, answer, requestId } = this.#options;
    if (!this.#isCommitted) client.answerError(format.error(error, requestId));
    else if (!this.#isOver) {
      this.#writePending(true);
      // An incomplete event of the provider must not swallow the error after it.
      client.end((this.#isBetweenEvents ? '' : '\n\n') + answer.streamError(error, requestId));
    }
    this.#finish();
  }

  get #isBetweenEvents(): boolean {
    return this.#pending.length === 0 && this.#lastByte === NEW_LINE && this.#secondLastByte === NEW_LINE;
  }

  #commit(): void {
    if (this.#isCommitted || this.#isOver || this.#provider === null) return;
    this.#isCommitted = true;
    const { client, jobId, ignored, trailers, timings } = this.#options;
    client.response.writeHead(200, {
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-cache',
      'X-Accel-Buffering': 'no',
      ...providerHeaders(this.#provider),
      'X-Inference-Job-ID': jobId,
      ...ignoredHeader(ignored),
      ...(trailers ? { Trailer: 'X-Se-Signature, X-Response-Hash, X-Inference-Receipt, X-Inference-Receipt-Signature' } : {}),
    });
    this.#keepAlive = setTimeout(() => this.#sendKeepAlive(), timings.keepAliveMs);
  }

  #writePending(last = false): void {
    if (this.#flush !== null) clearImmediate(this.#flush);
    this.#flush = null;
    if (this.#isOver || this.#pending.length === 0 || (this.#isStalled && !last)) return;
    const [first] = this.#pending;
    const all = this.#pending.length === 1 && first !== undefined ? first : Buffer.concat(this.#pending);
    const chunk = last ? all : all.subarray(0, CLIENT_WINDOW_BYTES);
    this.#pending = chunk.length === all.length ? [] : [all.subarray(chunk.length)];
    this.#observe();
    this.#secondLastByte = chunk.length > 1 ? (chunk[chunk.length - 2] as number) : this.#lastByte;
    this.#lastByte = chunk[chunk.length - 1] as number;
    this.#write(chunk, chunk.length);
    if (this.#pending.length > 0 && !this.#isStalled) this.#flush ??= setImmediate(() => this.#writePending());
  }

  /** Content goes out now. */
  #observe(): void {
    const { observer, startedAt } = this.#options;
    const now = performance.now();
    if (this.#written === 0) observer.event({ type: 'first_token', ms: now - startedAt });
    if (this.#oldestAt !== null) observer.relayed(now - this.#oldestAt);
    this.#oldestAt = null;
  }

  #write(chunk: Uint8Array | string, contentBytes: number): void {
    this.#keepAlive?.refresh();
    this.#written += contentBytes;
    if (this.#options.client.write(chunk, () => this.#drained())) this.#grant(contentBytes);
    else {
      this.#isStalled = true;
      this.#undrained += contentBytes;
    }
  }

  #drained(): void {
    this.#isStalled = false;
    const drained = this.#undrained;
    this.#undrained = 0;
    if (this.#isOver) return;
    this.#grant(drained);
    this.#writePending();
  }

  #sendKeepAlive(): void {
    if (this.#isOver) return;
    if (this.#isBetweenEvents && !this.#isStalled) this.#write(SSE_COMMENT, 0);
    else this.#keepAlive?.refresh();
  }

  #finish(): void {
    this.#isOver = true;
    this.#pending = [];
    if (this.#flush !== null) clearImmediate(this.#flush);
    if (this.#keepAlive !== null) clearTimeout(this.#keepAlive);
  }
}
