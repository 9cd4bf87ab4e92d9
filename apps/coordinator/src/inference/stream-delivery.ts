/**
 * Delivery of a stream: the provider's bytes as they come, unchanged. What arrives within one turn of the event loop goes out
 * in one write; credit returns only for what the client has drained; comments fill silence, and only between two events.
 */
import { type AnswerFormat, type ApiError, type Envelope, type SignedParts, SSE_COMMENT, type TextFormat } from '@inference/formats';
import type { OnlineSession } from '../fleet/provider-session.js';
import type { ClientConnection } from './client-connection.js';
import type { Delivery } from './delivery.js';
import { providerHeaders, signatureHeaders } from './response-headers.js';
import type { JobTimings } from './timings.js';

export interface StreamOptions {
  readonly client: ClientConnection;
  readonly format: TextFormat;
  readonly answer: AnswerFormat;
  readonly envelope: Envelope;
  readonly jobId: string;
  readonly requestId: string;
  /** The client sent `TE: trailers`. */
  readonly trailers: boolean;
  readonly timings: Pick<JobTimings, 'commitMs' | 'keepAliveMs'>;
}

const NEW_LINE = 0x0a;

export class StreamDelivery implements Delivery {
  readonly #options: StreamOptions;
  #session: OnlineSession | null = null;
  #grant: (bytes: number) => void = () => {};
  #committed = false;
  #stalled = false;
  #over = false;
  #bytes = 0;
  #pending: Uint8Array[] = [];
  #flush: NodeJS.Immediate | null = null;
  /** Written, but not drained by the client. */
  #undrained = 0;
  #commitTimer: NodeJS.Timeout | null = null;
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

  get bytes(): number {
    return this.#bytes;
  }

  begin(session: OnlineSession, grant: (bytes: number) => void): void {
    this.#session = session;
    this.#grant = grant;
  }

  accepted(): void {
    this.#commitTimer = setTimeout(() => this.#commitSilently(), this.#options.timings.commitMs);
  }

  push(bytes: Uint8Array): boolean {
    if (bytes.length === 0 || this.#over) return true;
    this.#commit();
    this.#bytes += bytes.length;
    this.#pending.push(bytes);
    this.#flush ??= setImmediate(() => this.#writePending());
    return true;
  }

  withdraw(): void {
    if (this.#commitTimer !== null) clearTimeout(this.#commitTimer);
    this.#commitTimer = null;
  }

  deliver(signed: SignedParts): void {
    const { client, answer, envelope, trailers } = this.#options;
    this.#commit();
    this.#writePending(true);
    if (!this.#over) {
      if (trailers) client.response.addTrailers(signatureHeaders(signed));
      client.end(answer.signatureEvent(envelope, signed));
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
    if (this.#committed || this.#over || this.#session === null) return;
    this.#committed = true;
    this.withdraw();
    const { client, jobId, trailers, timings } = this.#options;
    client.response.writeHead(200, {
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-cache',
      'X-Accel-Buffering': 'no',
      ...providerHeaders(this.#session),
      'X-Inference-Job-ID': jobId,
      ...(trailers ? { Trailer: 'X-Se-Signature, X-Response-Hash, X-Inference-Receipt, X-Inference-Receipt-Signature' } : {}),
    });
    this.#keepAlive = setTimeout(() => this.#fillSilence(), timings.keepAliveMs);
  }

  /** The provider is at work but has said nothing yet; the headers must not wait for its first bytes. */
  #commitSilently(): void {
    this.#commit();
    if (!this.#over) this.#options.client.response.flushHeaders();
  }

  #writePending(last = false): void {
    if (this.#flush !== null) clearImmediate(this.#flush);
    this.#flush = null;
    if (this.#over || this.#pending.length === 0 || (this.#stalled && !last)) return;
    const [first] = this.#pending;
    const chunk = this.#pending.length === 1 && first !== undefined ? first : Buffer.concat(this.#pending);
    this.#pending = [];
    this.#secondLastByte = chunk.length > 1 ? (chunk[chunk.length - 2] as number) : this.#lastByte;
    this.#lastByte = chunk[chunk.length - 1] as number;
    this.#write(chunk, chunk.length);
  }

  #write(chunk: Uint8Array | string, contentBytes: number): void {
    this.#keepAlive?.refresh();
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
    this.withdraw();
    if (this.#flush !== null) clearImmediate(this.#flush);
    if (this.#keepAlive !== null) clearTimeout(this.#keepAlive);
  }
}
