/**
 * `ClientConnection` writes a response to a client, detects the client's disconnect, and disconnects clients that read too slowly.
 *
 * On Linux, a client also counts as slow while its TCP stack has more than one window of bytes to acknowledge; see `SendQueues`.
 */
import type { OutgoingHttpHeader, ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import type { HttpError } from '@inference/formats';
import { Deadline } from '../deadline.js';
import type { SendQueues } from './send-queues.js';

type Headers = Readonly<Record<string, OutgoingHttpHeader | undefined>>;

/** Maximum unacknowledged bytes of a client that keeps up. Also the written bytes after which the kernel's send queue is read again. */
export const CLIENT_WINDOW_BYTES = 64 * 1024;
/** Maximum bytes written while the send queue is being read, which takes some 50 ms. */
export const MAX_UNCHECKED_BYTES = 4 * CLIENT_WINDOW_BYTES;
/** Interval between readings of a slow client's send queue, in milliseconds. */
const READ_INTERVAL_MS = 25;

export class ClientConnection {
  readonly response: ServerResponse;
  readonly #disconnected = new AbortController();
  readonly #drainMs: number;
  readonly #headers: Headers;
  /** Timeout of a slow client. Destroys `req.socket`, because a pipelined response may have no socket of its own yet. */
  readonly #draining = new Deadline(() => this.response.req.socket.destroy());
  /** Null if the operating system does not report unacknowledged bytes of this connection, or they are not needed. */
  #queues: SendQueues | null;
  #writtenBytes = 0;
  /** Bytes of chunks for which `response.write` returned false, until `drain`. Node.js buffers these. */
  #bufferedBytes = 0;
  /** Bytes in the kernel that the client had not acknowledged at the last reading of the send queue. */
  #unacknowledgedBytes = 0;
  /** Bytes written since the last reading of the send queue began. */
  #uncheckedBytes = 0;
  #isReading = false;
  #onReady: (() => void) | null = null;

  /** `drainMs`: see `JobTimings.clientDrainMs`. `headers`, such as the request id, precede those of `writeHead`. */
  constructor(response: ServerResponse, drainMs: number, queues: SendQueues | null = null, headers: Headers = {}) {
    this.response = response;
    this.#drainMs = drainMs;
    this.#queues = queues;
    this.#headers = headers;
    response.once('close', () => {
      this.#draining.clear();
      if (!response.writableFinished) this.#disconnected.abort();
    });
    // A reset connection also emits 'error', which would be uncaught without a listener.
    response.on('error', () => {});
    if (response.destroyed || response.closed) this.#disconnected.abort();
  }

  /** Aborted when the client disconnects before its response is complete. */
  get signal(): AbortSignal {
    return this.#disconnected.signal;
  }

  get isDisconnected(): boolean {
    return this.#disconnected.signal.aborted;
  }

  /**
   * Bytes that are not billed after a disconnect: buffered bytes, and at most one window of unacknowledged bytes.
   *
   * The first window of a response always counts as delivered once it left the buffer.
   */
  get undeliveredBytes(): number {
    const passedOn = this.#writtenBytes - this.#bufferedBytes;
    return this.#bufferedBytes + Math.min(this.#unacknowledgedBytes, CLIENT_WINDOW_BYTES, Math.max(0, passedOn - CLIENT_WINDOW_BYTES));
  }

  writeHead(status: number, headers: Headers): void {
    // A flat list of names and values, because merging large objects is slow (decision 0066).
    const list: OutgoingHttpHeader[] = [];
    for (const part of [this.#headers, headers]) {
      for (const name of Object.keys(part)) {
        const value = part[name];
        if (value !== undefined) list.push(name, value);
      }
    }
    this.response.writeHead(status, list);
  }

  /** Writes a chunk. Returns false if the client is slow, and calls `onReady` once the client has caught up. */
  write(chunk: Uint8Array | string, onReady: () => void): boolean {
    const bytes = typeof chunk === 'string' ? Buffer.byteLength(chunk) : chunk.length;
    this.#writtenBytes += bytes;
    this.#uncheckedBytes += bytes;
    if (!this.response.write(chunk)) {
      this.#bufferedBytes += bytes;
      this.response.once('drain', () => {
        this.#bufferedBytes = 0;
        this.#resume();
      });
    }
    void this.#readSendQueue();
    if (!this.#isBehind) return true;
    this.#onReady = onReady;
    this.#limitWait();
    return false;
  }

  end(chunk?: Uint8Array | string): void {
    if (this.isDisconnected) return;
    this.#draining.clear();
    this.response.end(chunk);
  }

  /** Sends an error as the whole response. Only allowed before any other write. */
  answerError(error: HttpError): void {
    if (this.isDisconnected) return;
    this.writeHead(error.status, { 'content-length': Buffer.byteLength(error.body), ...error.headers });
    this.end(error.body);
  }

  get #isBehind(): boolean {
    if (this.#bufferedBytes > 0) return true;
    return this.#queues !== null && (this.#unacknowledgedBytes > CLIENT_WINDOW_BYTES || this.#uncheckedBytes > MAX_UNCHECKED_BYTES);
  }

  /** Starts the timeout of a slow client. Unchecked bytes alone do not make a client slow. */
  #limitWait(): void {
    const isSlow = this.#bufferedBytes > 0 || this.#unacknowledgedBytes > CLIENT_WINDOW_BYTES;
    if (isSlow && this.#onReady !== null && !this.#draining.isSet) this.#draining.set(this.#drainMs);
  }

  /** Calls `onReady` of the last write, once the client has caught up. */
  #resume(): void {
    if (this.#isBehind) return;
    this.#draining.clear();
    const ready = this.#onReady;
    this.#onReady = null;
    ready?.();
  }

  /** Reads the send queue after each window of written bytes, and repeatedly while the client is slow. */
  async #readSendQueue(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    while (this.#queues !== null && !this.isDisconnected && !this.response.writableEnded) {
      if (this.#unacknowledgedBytes > CLIENT_WINDOW_BYTES) await pause(READ_INTERVAL_MS);
      else if (this.#uncheckedBytes < CLIENT_WINDOW_BYTES) break;
      const written = this.#uncheckedBytes;
      const unacknowledged = await this.#queues.unacknowledged(this.response.req.socket);
      // Closed connections are not listed, so the previous reading stays valid.
      if (this.isDisconnected || this.response.writableEnded) break;
      if (unacknowledged === null) this.#queues = null;
      // The client is reading, so its timeout restarts.
      if ((unacknowledged ?? 0) < this.#unacknowledgedBytes) this.#draining.renew();
      this.#unacknowledgedBytes = unacknowledged ?? 0;
      this.#uncheckedBytes -= written;
      this.#limitWait();
      this.#resume();
    }
    this.#isReading = false;
  }
}
