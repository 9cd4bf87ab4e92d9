/** `ResponseDrain` disconnects clients that stop reading a response or read too slowly. The shutdown awaits `whenDrained`. */
import type { Server, ServerResponse } from 'node:http';
import { WaitGroup } from '../../../wait-group.js';

/** Minimum bytes that a client reads per drain window: 1 MiB in two minutes is 8.7 KB/s. */
const MIN_BYTES_PER_DRAIN_WINDOW = 1024 * 1024;

export class ResponseDrain {
  readonly #drainMs: number;
  /** Complete responses with unread bytes. */
  readonly #unread = new WaitGroup();
  #endsConnections = false;

  /** A client that reads nothing for `drainMs` milliseconds is disconnected. */
  constructor(drainMs: number) {
    this.#drainMs = drainMs;
  }

  attach(server: Server): void {
    server.on('request', (request, response) => {
      response.once('finish', () => {
        if (this.#endsConnections) request.socket.end();
      });
      // Node.js restarts the timeout whenever the client reads. Without unsent bytes, the client is waiting for the coordinator.
      response.setTimeout(this.#drainMs, () => {
        if (unsentBytes(response) > 0) response.destroy();
      });
      response.once('prefinish', () => this.#limit(response));
    });
  }

  /** Ends connections after their current response, even where that response announced keep-alive. */
  endConnections(): void {
    this.#endsConnections = true;
  }

  /** Resolves when no complete response has unread bytes. */
  whenDrained(): Promise<void> {
    return this.#unread.wait();
  }

  /** Limits the time in which the client reads the rest of a complete response. */
  #limit(response: ServerResponse): void {
    const left = unsentBytes(response);
    if (left === 0) return;
    const timer = setTimeout(() => response.destroy(), this.#drainMs * (1 + left / MIN_BYTES_PER_DRAIN_WINDOW));
    this.#unread.add();
    response.once('close', () => {
      clearTimeout(timer);
      this.#unread.done();
    });
  }
}

/** Bytes that the client's connection has not accepted yet. */
function unsentBytes({ socket }: ServerResponse): number {
  return socket?.writableLength ?? 0;
}
