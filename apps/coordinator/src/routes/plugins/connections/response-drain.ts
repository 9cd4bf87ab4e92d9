/**
 * Answers on their way to clients, of whatever route. What a client does not take is held for it, so that one who stops taking, or
 * takes so little that it would never be done, is ended; one who merely has a slow line gets every byte. Whoever ends the process
 * can wait for those that are still being taken.
 */
import type { Server, ServerResponse } from 'node:http';

/** Bytes that a client must take in the time in which it must take something: 1 MiB in two minutes is 8.7 KB/s. */
const MIN_BYTES_PER_DRAIN_WINDOW = 1024 * 1024;

export class ResponseDrain {
  readonly #drainMs: number;
  readonly #ended = new Set<ServerResponse>();
  readonly #taken: (() => void)[] = [];

  /** A client that takes nothing for `drainMs` milliseconds is ended. */
  constructor(drainMs: number) {
    this.#drainMs = drainMs;
  }

  attach(server: Server): void {
    server.on('request', (_request, response) => {
      // Also without anything to send: nobody is ended who only waits for an answer. Node counts each part that was taken.
      response.setTimeout(this.#drainMs, () => {
        if (unsentBytes(response) > 0) response.destroy();
      });
      response.once('prefinish', () => this.#limit(response));
    });
  }

  /** Resolves when no answer that is complete waits for its client any more. */
  whenDrained(): Promise<void> {
    if (this.#ended.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#taken.push(resolve));
  }

  /** Its answer is complete: the rest has to be taken in a time that is bounded. Most were taken in this very moment. */
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

/** Bytes that the client's connection has not taken yet. */
function unsentBytes({ socket }: ServerResponse): number {
  return socket?.writableLength ?? 0;
}
