/**
 * One provider's WebSocket: caps on what comes in, a bound on what waits to go out, and signs of life. It knows nothing of
 * what the messages mean.
 */
import {
  type CoordinatorMessage,
  FRAME_HEADER_BYTES,
  MAX_FRAME_PAYLOAD_BYTES,
  MAX_TEXT_FRAME_BYTES,
  MAX_UNSENT_BYTES,
  type RejectionCode,
  type RejectionReason,
} from '@inference/protocol';
import type { RawData, WebSocket } from 'ws';

/** The stream under a WebSocket, as far as sends are gathered on it. */
export interface Transport {
  cork(): void;
  uncork(): void;
}

/** The library's own cap. Above ours, so that a message somewhat over ours is still answered with its reason. */
export const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;
/** Unsent bytes above which a ping is not answered: whoever does not read would let the answers pile up. */
const MAX_UNSENT_BEFORE_PONG = 64 * 1024;
/** Time for the last words and the closing handshake, in milliseconds. */
const CLOSE_MS = 2000;

/** Why this side ended a connection. */
export interface Rejection {
  readonly code: RejectionCode;
  readonly reason: RejectionReason | null;
  /** For the owner's eyes. */
  readonly message: string;
}

export interface SocketEvents {
  text(text: string): void;
  binary(bytes: Uint8Array): void;
  /** A ping or a pong came. */
  signOfLife(): void;
  /** Once, whatever ended the connection. `rejection` when this side ended it. */
  closed(rejection: Rejection | null): void;
}

export class ProviderSocket {
  readonly #socket: WebSocket;
  readonly #events: SocketEvents;
  readonly #now: () => number;
  readonly #transport: Transport;
  #lastHeardAt: number;
  #unanswered = 0;
  #ended = false;

  constructor(socket: WebSocket, transport: Transport, now: () => number, events: SocketEvents) {
    this.#socket = socket;
    this.#transport = transport;
    this.#events = events;
    this.#now = now;
    this.#lastHeardAt = now();
    socket.on('message', (data, isBinary) => this.#receive(data, isBinary));
    socket.on('ping', (data) => this.#ping(data));
    socket.on('pong', () => this.#signOfLife());
    // Errors are always followed by 'close', which is where the session ends.
    socket.on('error', () => {});
    socket.on('close', () => this.#end(null));
  }

  get lastHeardAt(): number {
    return this.#lastHeardAt;
  }

  /** Pings since anything was heard. */
  get unanswered(): number {
    return this.#unanswered;
  }

  get open(): boolean {
    return !this.#ended;
  }

  send(message: CoordinatorMessage): void {
    this.#sendBounded(JSON.stringify(message));
  }

  /** Sends a message and the frames that belong to it in one call to the system, at once: the provider starts while the next job is sealed. */
  sendWithFrames(message: CoordinatorMessage, frames: readonly Uint8Array[]): void {
    this.#transport.cork();
    this.send(message);
    for (const frame of frames) this.#sendBounded(frame);
    this.#transport.uncork();
  }

  ping(): void {
    if (this.#ended) return;
    this.#unanswered++;
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.ping();
  }

  /** Tells the provider why and ends the session. Later messages from it are not read. */
  reject(code: RejectionCode, message: string, reason: RejectionReason | null = null): void {
    if (this.#ended) return;
    const closeCode = code === 'too_large' ? 1009 : code === 'shutting_down' ? 1001 : 1008;
    if (this.#socket.readyState === this.#socket.OPEN && this.#socket.bufferedAmount < MAX_UNSENT_BYTES) {
      const exact = reason === null ? {} : { reason };
      this.#socket.send(JSON.stringify({ type: 'rejected', code, ...exact, message: message.slice(0, 1024) }));
      this.#socket.close(closeCode, code);
      const timer = setTimeout(() => this.#socket.terminate(), CLOSE_MS);
      timer.unref();
      this.#socket.once('close', () => clearTimeout(timer));
    } else {
      this.#socket.terminate();
    }
    this.#end({ code, reason, message });
  }

  /** Ends the session without a word, for a peer that is not there any more. */
  terminate(): void {
    this.#socket.terminate();
    this.#end(null);
  }

  #ping(data: Buffer): void {
    this.#signOfLife();
    if (!this.#ended && this.#socket.bufferedAmount < MAX_UNSENT_BEFORE_PONG) this.#socket.pong(data);
  }

  #signOfLife(): void {
    this.#heard();
    if (!this.#ended) this.#events.signOfLife();
  }

  #receive(data: RawData, isBinary: boolean): void {
    this.#heard();
    if (this.#ended) return;
    const bytes = data as Buffer;
    if (isBinary) {
      if (bytes.length > FRAME_HEADER_BYTES + MAX_FRAME_PAYLOAD_BYTES) this.reject('too_large', `binary frame of ${bytes.length} bytes`);
      else this.#events.binary(bytes);
    } else if (bytes.length > MAX_TEXT_FRAME_BYTES) this.reject('too_large', `message of ${bytes.length} bytes`);
    else this.#events.text(bytes.toString('utf8'));
  }

  #sendBounded(data: string | Uint8Array): void {
    if (this.#ended || this.#socket.readyState !== this.#socket.OPEN) return;
    this.#socket.send(data);
    if (this.#socket.bufferedAmount > MAX_UNSENT_BYTES) this.reject('too_slow', 'the provider does not take what is sent to it');
  }

  #heard(): void {
    this.#lastHeardAt = this.#now();
    this.#unanswered = 0;
  }

  #end(rejection: Rejection | null): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#events.closed(rejection);
  }
}
