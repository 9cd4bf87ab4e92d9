/** `Peer`: another coordinator, to which requests and streams can be sent. `PeerStream`: a stream of messages to or from a peer. */
import type { LinkStream, StreamEnd, StreamHandlers } from './link/link-stream.js';

export interface Peer {
  /** Name of the coordinator in NATS subjects, logs and metrics. */
  readonly id: string;
  /** Sends a request to the peer. Rejects after `timeoutMs`, and when the link is lost. */
  request(kind: string, payload: Uint8Array, timeoutMs: number): Promise<Uint8Array>;
  /** Opens a stream. Never throws: without a link, the stream is closed from the start. */
  openStream(kind: string, header: Uint8Array): PeerStream;
}

export interface StreamEvents {
  message(bytes: Uint8Array, isText: boolean): void;
  control(bytes: Uint8Array): void;
  /** The stream accepts messages again, after `send` returned false. */
  drained(): void;
  /** Called once, as the last event, for a normal end, an abort or a lost link. */
  closed(): void;
}

/** Adapter for a `LinkStream` whose event receiver can be replaced. A placement first receives the reply, then the job's messages. */
export class PeerStream implements StreamHandlers {
  #stream: LinkStream | null = null;
  #events: StreamEvents | null = null;
  #onEnd: () => void = () => {};
  #isClosed = false;

  /** Opens a stream with `open`. If `open` throws because there is no link, the stream is closed from the start. */
  static open(open: (handlers: StreamHandlers) => LinkStream): PeerStream {
    const stream = new PeerStream();
    try {
      stream.#stream = open(stream);
    } catch {
      stream.#isClosed = true;
    }
    return stream;
  }

  /** Wraps a stream that the peer opened. `onEnd` is called once, as the last event. */
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

  /** Sends a message. False: the caller must wait for `drained`, or the stream has ended. */
  send(bytes: Uint8Array, isText: boolean): boolean {
    return this.#stream?.send(bytes, isText) ?? false;
  }

  /** Sends a short message, which may overtake messages of `send`. */
  sendControl(bytes: Uint8Array): void {
    this.#stream?.sendControl(bytes);
  }

  /** Ends the stream once all queued messages are sent. */
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
