/**
 * The client's side of one request: knows when the client has gone, and gives up on a client that does not take what was written in
 * time. After the client has left, `end` and `answerError` do nothing; callers stop calling `write`. The end of an answer has a time of its own (`routes/answers-underway`).
 * Where the system reports it, a client that is more than a window behind is waited for.
 */
import type { ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import type { HttpError } from '@inference/formats';
import { Deadline } from '../deadline.js';
import type { SendQueues } from './send-queues.js';

/** Maximum of unacknowledged bytes; also the number of written bytes after which the kernel's send queue is read. */
export const CLIENT_WINDOW_BYTES = 64 * 1024;
/** Bytes that may be written while the send queue is being read, which takes some 50 ms. */
export const MAX_UNCHECKED_BYTES = 4 * CLIENT_WINDOW_BYTES;
/** Between two readings of the send queue of a client that is behind, in milliseconds. */
const LOOK_MS = 25;

export class ClientConnection {
  readonly response: ServerResponse;
  readonly #gone = new AbortController();
  readonly #drainMs: number;
  /** Destroys `req.socket`: a pipelined response has no socket of its own yet. */
  readonly #draining = new Deadline(() => this.response.req.socket.destroy());
  /** Null: the system does not report what the client's machine acknowledged. */
  #queues: SendQueues | null;
  #written = 0;
  /** Bytes of chunks for which `response.write` returned false, until `drain`. */
  #buffered = 0;
  /** Passed on, and not acknowledged at the last look. */
  #unacknowledged = 0;
  /** Written since the last look began. */
  #unchecked = 0;
  #looking = false;
  #onReady: (() => void) | null = null;

  constructor(response: ServerResponse, drainMs: number, queues: SendQueues | null = null) {
    this.response = response;
    this.#drainMs = drainMs;
    this.#queues = queues;
    response.once('close', () => {
      this.#draining.clear();
      if (!response.writableFinished) this.#gone.abort();
    });
    // A reset connection also emits 'close'; without a listener it would be an uncaught error.
    response.on('error', () => {});
    if (response.destroyed || response.closed) this.#gone.abort();
  }

  /** Aborted when the client goes away before its answer is complete. */
  get signal(): AbortSignal {
    return this.#gone.signal;
  }

  get gone(): boolean {
    return this.#gone.signal.aborted;
  }

  /**
   * Bytes that are not billed once the client has left: all buffered ones, and after the first window at most one window of
   * unacknowledged ones, because a client can read everything and leave between two readings.
   */
  get untaken(): number {
    const passedOn = this.#written - this.#buffered;
    return this.#buffered + Math.min(this.#unacknowledged, CLIENT_WINDOW_BYTES, Math.max(0, passedOn - CLIENT_WINDOW_BYTES));
  }

  /** Writes. False: the client is behind, and `onReady` is called when it has caught up. */
  write(chunk: Uint8Array | string, onReady: () => void): boolean {
    const bytes = typeof chunk === 'string' ? Buffer.byteLength(chunk) : chunk.length;
    this.#written += bytes;
    this.#unchecked += bytes;
    if (!this.response.write(chunk)) {
      this.#buffered += bytes;
      this.response.once('drain', () => {
        this.#buffered = 0;
        this.#goOn();
      });
    }
    void this.#look();
    if (!this.#isBehind) return true;
    this.#onReady = onReady;
    this.#limitWait();
    return false;
  }

  /** Ends the response. */
  end(chunk?: Uint8Array | string): void {
    if (this.gone) return;
    this.#draining.clear();
    this.response.end(chunk);
  }

  /** Answers with an error as a whole response. Only before anything else was sent. */
  answerError(error: HttpError): void {
    if (this.gone) return;
    this.response.writeHead(error.status, { ...error.headers, 'content-length': Buffer.byteLength(error.body) });
    this.end(error.body);
  }

  get #isBehind(): boolean {
    if (this.#buffered > 0) return true;
    return this.#queues !== null && (this.#unacknowledged > CLIENT_WINDOW_BYTES || this.#unchecked > MAX_UNCHECKED_BYTES);
  }

  /** A client has a limited time to catch up. A look that is under way is not its fault. */
  #limitWait(): void {
    const isSlow = this.#buffered > 0 || this.#unacknowledged > CLIENT_WINDOW_BYTES;
    if (isSlow && this.#onReady !== null && !this.#draining.isSet) this.#draining.set(this.#drainMs);
  }

  #goOn(): void {
    if (this.#isBehind) return;
    this.#draining.clear();
    const ready = this.#onReady;
    this.#onReady = null;
    ready?.();
  }

  /** Finds out how far the client is behind, once a window was written, and again until it has caught up. */
  async #look(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    while (this.#queues !== null && !this.gone && !this.response.writableEnded) {
      if (this.#unacknowledged > CLIENT_WINDOW_BYTES) await pause(LOOK_MS);
      else if (this.#unchecked < CLIENT_WINDOW_BYTES) break;
      const written = this.#unchecked;
      const unacknowledged = await this.#queues.unacknowledged(this.response.req.socket);
      // A connection that is closed is in no list any more; what was seen last stands.
      if (this.gone || this.response.writableEnded) break;
      if (unacknowledged === null) this.#queues = null;
      // Less than before: it takes something.
      if ((unacknowledged ?? 0) < this.#unacknowledged) this.#draining.renew();
      this.#unacknowledged = unacknowledged ?? 0;
      this.#unchecked -= written;
      this.#limitWait();
      this.#goOn();
    }
    this.#looking = false;
  }
}
