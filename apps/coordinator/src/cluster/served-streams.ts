/** Counts the streams that peers have opened here, jobs of their clients included, so that a shutdown can wait for their end. */
import type { LinkStream } from './link/link-stream.js';
import { PeerStream } from './peer.js';

export class ServedStreams {
  #openCount = 0;
  readonly #onIdle: (() => void)[] = [];

  /** A stream that a peer has opened, counted until its end. */
  incoming(stream: LinkStream): PeerStream {
    this.#openCount++;
    return PeerStream.incoming(stream, () => {
      this.#openCount--;
      if (this.#openCount === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
    });
  }

  /** Resolves when no stream of a peer is open. */
  whenIdle(): Promise<void> {
    if (this.#openCount === 0) return Promise.resolve();
    return new Promise((resolve) => this.#onIdle.push(resolve));
  }
}
