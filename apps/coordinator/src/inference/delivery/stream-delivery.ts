/**
 * Delivery of a stream: the provider's bytes as they come, unchanged. What arrives within one turn of the event loop goes out
 * in one write, a window at a time; credit returns only for what the client has taken; comments fill silence, and only between two events.
 */
import {
  type AnswerFormat,
  type ApiError,
  type Envelope,
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
  readonly envelope: Envelope;
  readonly jobId: string;
  readonly signatureForm: SignatureForm;
  /** What of the request has no effect. */
  readonly ignored: readonly string[];
  readonly requestId: string;
  /** Content bytes after which the provider must be wrong. */
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
  #committed = false;
  #stalled = false;
  #over = false;
  #written = 0;
  #pushed = 0;
  #pending: Uint8Array[] = [];
  /** When the first of what is pending came; null while the client is what it waits for. */
  #oldestAt: number | null = null;
  #flush: NodeJS.Immediate | null = null;
  /** Written while the client is behind: no credit was returned for it. */
  #undrained = 0;
  #keepAlive: NodeJS.Timeout | null = null;
  #lastByte = NEW_LINE;
  #secondLastByte = NEW_LINE;

  constructor(options: StreamOptions) {
    this.#options = options;
    options.client.signal.addEventListener('abort', () => this.#finish());
  }

  get committed(): boolean {
    return this.#committed;
  }

  get stalled(): boolean {
    return this.#stalled;
  }

  get delivered(): number {
    return Math.max(0, this.#written - this.#options.client.untaken);
  }

  begin(provider: ProviderConnection, grant: (bytes: number) => void): void {
    this.#provider = provider;
    this.#grant = grant;
  }

  commit(): void {
    this.#commit();
    if (!this.#over) this.#options.client.response.flushHeaders();
  }

  push(bytes: Uint8Array, cameAt: number): boolean {
    if (bytes.length === 0 || this.#over) return true;
    this.#pushed += bytes.length;
    if (this.#pushed > this.#options.maxBytes) return false;
    this.#commit();
    if (!this.#stalled) this.#oldestAt ??= cameAt;
    this.#pending.push(bytes);
    this.#flush ??= setImmediate(() => this.#writePending());
    return true;
  }

  /** Whatever came has committed. */
  withdraw(): void {}

  deliver(signed: SignedParts): void {
    const { client, answer, envelope, signatureForm, trailers } = this.#options;
    this.#commit();
    this.#writePending(true);
    if (!this.#over) {
      if (trailers) client.response.addTrailers(signatureHeaders(signed));
      client.end(answer.signatureEvent(envelope, signed, signatureForm));
    }
    this.#finish();
  }

  fail(error: ApiError): void {
    const { client, format, answer, requestId } = this.#options;
    if (!this.#committed) client.answerError(format.error(error, requestId));
    else if (!this.#over) {
      this.#writePending(true);
      // A provider that broke off inside an event must not swallow the error that follows.
      client.end((this.#betweenEvents ? '' : '\n\n') + answer.streamError(error, requestId));
    }
    this.#finish();
  }

  get #betweenEvents(): boolean {
    return this.#pending.length === 0 && this.#lastByte === NEW_LINE && this.#secondLastByte === NEW_LINE;
  }

  #commit(): void {
    if (this.#committed || this.#over || this.#provider === null) return;
    this.#committed = true;
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
    this.#keepAlive = setTimeout(() => this.#fillSilence(), timings.keepAliveMs);
  }

  #writePending(last = false): void {
    if (this.#flush !== null) clearImmediate(this.#flush);
    this.#flush = null;
    if (this.#over || this.#pending.length === 0 || (this.#stalled && !last)) return;
    const [first] = this.#pending;
    const all = this.#pending.length === 1 && first !== undefined ? first : Buffer.concat(this.#pending);
    const chunk = last ? all : all.subarray(0, CLIENT_WINDOW_BYTES);
    this.#pending = chunk.length === all.length ? [] : [all.subarray(chunk.length)];
    this.#observe();
    this.#secondLastByte = chunk.length > 1 ? (chunk[chunk.length - 2] as number) : this.#lastByte;
    this.#lastByte = chunk[chunk.length - 1] as number;
    this.#write(chunk, chunk.length);
    if (this.#pending.length > 0 && !this.#stalled) this.#flush ??= setImmediate(() => this.#writePending());
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
      this.#stalled = true;
      this.#undrained += contentBytes;
    }
  }

  #drained(): void {
    this.#stalled = false;
    const drained = this.#undrained;
    this.#undrained = 0;
    if (this.#over) return;
    this.#grant(drained);
    this.#writePending();
  }

  #fillSilence(): void {
    if (this.#over) return;
    if (this.#betweenEvents && !this.#stalled) this.#write(SSE_COMMENT, 0);
    else this.#keepAlive?.refresh();
  }

  #finish(): void {
    this.#over = true;
    this.#pending = [];
    if (this.#flush !== null) clearImmediate(this.#flush);
    if (this.#keepAlive !== null) clearTimeout(this.#keepAlive);
  }
}
