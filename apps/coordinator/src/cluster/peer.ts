/** `Peer` and `PeerStream`: another coordinator and a stream to it, as placements and views use the link. */
import type { LinkStream, StreamEnd, StreamHandlers } from './link/link-stream.js';

export interface Peer {
  /** Name of the coordinator in subjects, logs and metrics. */
  readonly id: string;
  /** Sends a request to the peer. Rejects after `timeoutMs`, and when the link is lost. */
  request(kind: string, payload: Uint8Array, timeoutMs: number): Promise<Uint8Array>;
  /** A stream that ends at once when the link is lost. */
  openStream(kind: string, header: Uint8Array): PeerStream;
}

export interface StreamEvents {
  message(bytes: Uint8Array, isText: boolean): void;
  /** A message that bulk data did not delay. */
  control(bytes: Uint8Array): void;
  /** The stream accepts messages again, after `send` returned false. */
  drained(): void;
  /** Called once, last, however the stream ended. */
  closed(): void;
}

/** A stream of a link whose receiver can change. */
export class PeerStream implements StreamHandlers {
  #stream: LinkStream | null = null;
  #events: StreamEvents | null = null;
  #onEnd: () => void = () => {};
  #isClosed = false;

  /** A stream opened by `open` with this object as its handlers; closed from the start where the link is lost. */
  static open(open: (handlers: StreamHandlers) => LinkStream): PeerStream {
    const stream = new PeerStream();
    try {
      stream.#stream = open(stream);
    } catch {
      stream.#isClosed = true;
    }
    return stream;
  }

  /** A stream that the peer has opened. `onEnd` is called once, last, however the stream ended. */
  static incoming(stream: LinkStream, onEnd: () => void = () => {}): PeerStream {
    const incoming = new PeerStream();
    incoming.#stream = stream;
    incoming.#onEnd = onEnd;
    return incoming;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Sets the receiver of all later events. */
  listen(events: StreamEvents): void {
    this.#events = events;
    if (this.#isClosed) events.closed();
  }

  /** False: wait for `drained`. */
  send(bytes: Uint8Array, isText: boolean): boolean {
    return this.#stream?.send(bytes, isText) ?? false;
  }

  /** Sends a short message that may overtake others. */
  sendControl(bytes: Uint8Array): void {
    this.#stream?.sendControl(bytes);
  }

  /** Ends the stream after everything sent. */
  close(): void {
    this.#stream?.close();
  }

  abort(code: string): void {
    this.#stream?.abort(code);
  }

  onMessage(bytes: Uint8Array, isText: boolean): void {
    this.#events?.message(bytes, isText);
  }

  onControl(bytes: Uint8Array): void {
    this.#events?.control(bytes);
  }

  onDrain(): void {
    this.#events?.drained();
  }

  onClosed(_end: StreamEnd): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#events?.closed();
    this.#onEnd();
  }
}
