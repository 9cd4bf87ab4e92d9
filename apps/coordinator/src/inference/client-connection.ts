/**
 * The client's side of one request: knows when the client has gone, refuses to be written to after that, and gives up on a
 * client that does not take what was written in time. The end of an answer has a time of its own (`routes/answers-underway`).
 */
import type { ServerResponse } from 'node:http';
import type { HttpError } from '@inference/formats';
import { Deadline } from './deadline.js';

export class ClientConnection {
  readonly response: ServerResponse;
  readonly #gone = new AbortController();
  readonly #drainMs: number;
  /** Ends the connection, which a response that waits for its turn on it does not have yet. */
  readonly #draining = new Deadline(() => this.response.req.socket.destroy());

  constructor(response: ServerResponse, drainMs: number) {
    this.response = response;
    this.#drainMs = drainMs;
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

  /** Writes, and calls back when what was written has drained. False: it has not drained yet. */
  write(chunk: Uint8Array | string, onDrain: () => void): boolean {
    if (this.response.write(chunk)) return true;
    if (!this.#draining.isSet) this.#draining.set(this.#drainMs);
    this.response.once('drain', () => {
      this.#draining.clear();
      onDrain();
    });
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
}
