/**
 * `StreamDelivery` writes a stream to the client as it arrives. A `StreamFraming` supplies headers, keep-alives and the last bytes.
 *
 * A provider gets further credit (bytes that it may send) only for bytes that the client's connection has taken.
 */
import type { ApiError, HttpError, SignedParts } from '@inference/formats';
import type { ProviderConnection } from '../../providers/provider-connection.js';
import type { JobObserver } from '../job-observer.js';
import type { JobTimings } from '../job-timings.js';
import type { Route } from '../request/job-routing.js';
import { CLIENT_WINDOW_BYTES, type ClientConnection } from './client-connection.js';
import type { Delivery } from './delivery.js';
import type { StreamFraming } from './stream-framing.js';

export interface StreamOptions {
  readonly client: ClientConnection;
  readonly framing: StreamFraming;
  /** Error response, if no byte of the stream was sent yet. */
  readonly errorResponse: (error: ApiError) => HttpError;
  /** Headers that describe the provider and the routing decision. */
  readonly providerHeaders: (provider: ProviderConnection, route: Route) => Readonly<Record<string, string>>;
  readonly jobId: string;
  /** Maximum content bytes. A longer stream is the provider's fault. */
  readonly maxBytes: number;
  readonly timings: Pick<JobTimings, 'keepAliveMs'>;
  readonly observer: JobObserver;
  /** Time at which the request had been read and parsed (`performance.now`). */
  readonly startedAt: number;
}

export class StreamDelivery implements Delivery {
  readonly #options: StreamOptions;
  #provider: ProviderConnection | null = null;
  #route: Route | null = null;
  #grant: (bytes: number) => void = () => {};
  #isCommitted = false;
  #isStalled = false;
  #isOver = false;
  #writtenBytes = 0;
  #receivedBytes = 0;
  #unwritten: Uint8Array[] = [];
  /** Arrival time of the oldest pending byte, for the metric of the relay's delay. Null if none is pending, or the client was slow. */
  #oldestAt: number | null = null;
  #flush: NodeJS.Immediate | null = null;
  /** Bytes written while the client was slow, whose credit is not returned yet. */
  #undrainedBytes = 0;
  #keepAlive: NodeJS.Timeout | null = null;

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
    return Math.max(0, this.#writtenBytes - this.#options.client.undeliveredBytes);
  }

  begin(provider: ProviderConnection, grant: (bytes: number) => void, route: Route): void {
    this.#provider = provider;
    this.#route = route;
    this.#grant = grant;
  }

  commit(): void {
    this.#commit();
    if (!this.#isOver) this.#options.client.response.flushHeaders();
  }

  push(bytes: Uint8Array, receivedAt: number): boolean {
    if (bytes.length === 0 || this.#isOver) return true;
    this.#receivedBytes += bytes.length;
    if (this.#receivedBytes > this.#options.maxBytes) return false;
    const content = this.#options.framing.take(bytes);
    if (content.length === 0) return true;
    this.#commit();
    if (!this.#isStalled) this.#oldestAt ??= receivedAt;
    this.#unwritten.push(content);
    this.#flush ??= setImmediate(() => this.#writePending());
    return true;
  }

  /** Nothing to discard: with its first content, a stream is committed and cannot move to another provider. */
  withdraw(): void {}

  deliver(signed: SignedParts): void {
    const { client, framing } = this.#options;
    this.#commit();
    this.#writePending(true);
    if (!this.#isOver) {
      const { bytes, trailers } = framing.ending(signed, this.#route?.model ?? null);
      if (trailers !== null) client.response.addTrailers(trailers);
      client.end(bytes);
    }
    this.#finish();
  }

  fail(error: ApiError): void {
    const { client, framing, errorResponse } = this.#options;
    if (!this.#isCommitted) client.answerError(errorResponse(error));
    else if (!this.#isOver) {
      this.#writePending(true);
      client.end(framing.failure(error));
    }
    this.#finish();
  }

  #commit(): void {
    if (this.#isCommitted || this.#isOver || this.#provider === null || this.#route === null) return;
    this.#isCommitted = true;
    const { client, framing, jobId, providerHeaders, timings } = this.#options;
    const named = providerHeaders(this.#provider, this.#route);
    client.writeHead(200, { 'X-Inference-Job-ID': jobId, ...framing.headers, ...named });
    this.#keepAlive = setTimeout(() => this.#sendKeepAlive(), timings.keepAliveMs);
  }

  /** Writes up to one window of pending content, and schedules the rest. With `last`, writes all, even to a slow client. */
  #writePending(last = false): void {
    if (this.#flush !== null) clearImmediate(this.#flush);
    this.#flush = null;
    if (this.#isOver || this.#unwritten.length === 0 || (this.#isStalled && !last)) return;
    const [first] = this.#unwritten;
    const all = this.#unwritten.length === 1 && first !== undefined ? first : Buffer.concat(this.#unwritten);
    const chunk = last ? all : all.subarray(0, CLIENT_WINDOW_BYTES);
    this.#unwritten = chunk.length === all.length ? [] : [all.subarray(chunk.length)];
    this.#observe();
    this.#write(chunk, chunk.length);
    if (this.#unwritten.length > 0 && !this.#isStalled) this.#flush ??= setImmediate(() => this.#writePending());
  }

  /** Reports latency to the observer, just before content is written. */
  #observe(): void {
    const { observer, startedAt } = this.#options;
    const now = performance.now();
    if (this.#writtenBytes === 0) observer.event({ type: 'first_token', ms: now - startedAt });
    if (this.#oldestAt !== null) observer.relayed(now - this.#oldestAt);
    this.#oldestAt = null;
  }

  #write(chunk: Uint8Array | string, contentBytes: number): void {
    this.#keepAlive?.refresh();
    this.#writtenBytes += contentBytes;
    if (this.#options.client.write(chunk, () => this.#drained())) this.#grant(contentBytes);
    else {
      this.#isStalled = true;
      this.#undrainedBytes += contentBytes;
    }
  }

  #drained(): void {
    this.#isStalled = false;
    const drained = this.#undrainedBytes;
    this.#undrainedBytes = 0;
    if (this.#isOver) return;
    this.#grant(drained);
    this.#writePending();
  }

  #sendKeepAlive(): void {
    if (this.#isOver) return;
    const { framing } = this.#options;
    const isBetweenUnits = this.#unwritten.length === 0 && framing.isBetweenUnits;
    if (isBetweenUnits && !this.#isStalled) this.#write(framing.keepAlive, 0);
    else this.#keepAlive?.refresh();
  }

  #finish(): void {
    this.#isOver = true;
    this.#unwritten = [];
    if (this.#flush !== null) clearImmediate(this.#flush);
    if (this.#keepAlive !== null) clearTimeout(this.#keepAlive);
  }
}
