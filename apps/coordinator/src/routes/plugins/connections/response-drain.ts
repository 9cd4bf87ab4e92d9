/**
 * `ResponseDrain` limits the time in which clients read responses, on every route. Unread bytes stay in memory. A client is
 * disconnected if reading stops or is too slow; a client on a slow line gets every byte. The shutdown waits for unread responses.
 */
import type { Server, ServerResponse } from 'node:http';

/** Minimum bytes that a client reads per drain window: 1 MiB in two minutes is 8.7 KB/s. */
const MIN_BYTES_PER_DRAIN_WINDOW = 1024 * 1024;

export class ResponseDrain {
  readonly #drainMs: number;
  readonly #ended = new Set<ServerResponse>();
  readonly #taken: (() => void)[] = [];
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
      // The timeout also runs without unsent bytes, where the client only waits for a response. Node.js restarts the timer with
      // each part that was read.
      response.setTimeout(this.#drainMs, () => {
        if (unsentBytes(response) > 0) response.destroy();
      });
      response.once('prefinish', () => this.#limit(response));
    });
  }

  /** Makes connections end after their running response, even where the response has announced keep-alive. */
  endConnections(): void {
    this.#endsConnections = true;
  }

  /** Resolves when no complete response has unread bytes. */
  whenDrained(): Promise<void> {
    if (this.#ended.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#taken.push(resolve));
  }

  /** The response is complete: the rest must be read in bounded time. Most responses have been read already. */
  #limit(response: ServerResponse): void {
    const left = unsentBytes(response);
    if (left === 0) return;
    const timer = setTimeout(() => response.destroy(), this.#drainMs * (1 + left / MIN_BYTES_PER_DRAIN_WINDOW));
    this.#ended.add(response);
    response.once('close', () => {
      clearTimeout(timer);
      this.#ended.delete(response);
      if (this.#ended.size === 0) for (const wake of this.#taken.splice(0)) wake();
    });
  }
}

/** Bytes that the client's connection has not accepted yet. */
function unsentBytes({ socket }: ServerResponse): number {
  return socket?.writableLength ?? 0;
}
