/** `Connection`: WebSocket to the coordinator, with pings and a limit of unsent bytes. A silent socket is closed. */
import type { Duplex } from 'node:stream';
import {
  type CoordinatorMessage,
  decodeFrame,
  FRAME_HEADER_BYTES,
  type Frame,
  MAX_FRAME_PAYLOAD_BYTES,
  MAX_TEXT_FRAME_BYTES,
  MAX_UNSENT_BYTES,
  type ProviderMessage,
  parseCoordinatorMessage,
} from '@inference/protocol';
import WebSocket from 'ws';
import { GatheredWrites } from './gathered-writes.js';

export interface Liveness {
  /** Interval of pings. Silence is checked before each. */
  readonly pingMs: number;
  /** Silence after which the socket is considered dead. */
  readonly silenceMs: number;
  /** Time to answer a probe after sleep. Default 5 s. */
  readonly probeMs?: number;
}

/** Finds a dead socket within 28 s. Applies until `setHeartbeat`. */
const LIVENESS: Liveness = { pingMs: 8_000, silenceMs: 20_000 };
const CONNECT_TIMEOUT_MS = 10_000;
const PROBE_MS = 5_000;
const SILENCE_REASON = 'the coordinator has been silent for too long';
/** Payload of the probe's ping, which the pong repeats (RFC 6455, section 5.5.3). */
const PROBE_PAYLOAD = Buffer.from('awake');
/** Multiples of the heartbeat interval: time between checks, silence before a ping and before the end. */
const HEARTBEAT = { check: 0.125, ping: 0.75, silence: 1.75 };
/** Maximum wait for the coordinator's part of the closing handshake. */
const CLOSE_TIMEOUT_MS = 1_000;

interface ConnectionHandlers {
  readonly onMessage: (message: CoordinatorMessage) => void;
  readonly onFrame: (frame: Frame) => void;
  readonly onUnknownMessage: () => void;
  /** Called once, with the reason as a sentence. */
  readonly onClosed: (reason: string) => void;
}

export class Connection {
  #lastActivityAt = performance.now();
  #isClosed = false;
  #closeTimer: NodeJS.Timeout | null = null;
  #probeTimer: NodeJS.Timeout | null = null;
  #livenessTimer: NodeJS.Timeout;

  private constructor(
    private readonly socket: WebSocket,
    private readonly writes: GatheredWrites,
    private readonly handlers: ConnectionHandlers,
    private readonly liveness: Liveness,
  ) {
    socket.on('message', (data, isBinary) => this.#receive(data as Buffer, isBinary));
    socket.on('ping', () => this.#noteActivity());
    socket.on('pong', (data) => {
      this.#noteActivity();
      if (this.#probeTimer === null || !data.equals(PROBE_PAYLOAD)) return;
      clearTimeout(this.#probeTimer);
      this.#probeTimer = null;
    });
    socket.on('error', (error) => this.#close(`the connection failed: ${error.message}`));
    socket.on('close', (code) => this.#close(`the coordinator closed the connection (${code})`));
    // After a blocked event loop, `setImmediate` lets waiting frames be read before the check.
    this.#livenessTimer = setInterval(() => setImmediate(() => this.#checkLiveness()), liveness.pingMs);
  }

  /** `signal` aborts only the connecting. Throws an Error with a sentence for the owner. */
  static async open(
    url: string,
    handlers: ConnectionHandlers,
    signal: AbortSignal,
    { liveness = LIVENESS, timeoutMs = CONNECT_TIMEOUT_MS }: { readonly liveness?: Liveness; readonly timeoutMs?: number } = {},
  ): Promise<Connection> {
    signal.throwIfAborted();
    const socket = new WebSocket(url, {
      handshakeTimeout: timeoutMs,
      maxPayload: Math.max(MAX_TEXT_FRAME_BYTES, FRAME_HEADER_BYTES + MAX_FRAME_PAYLOAD_BYTES),
      perMessageDeflate: false,
    });
    const onAbort = () => socket.terminate();
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      const tcpStream = await new Promise<Duplex>((resolve, reject) => {
        socket.once('upgrade', (response) => socket.once('open', () => resolve(response.socket)));
        socket.once('error', (error) => reject(new Error(`the coordinator cannot be reached: ${error.message}`)));
      });
      return new Connection(socket, new GatheredWrites(tcpStream), handlers, liveness);
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  /** Replaces ping interval and silence limit, so that a silent socket ends within two heartbeats. */
  setHeartbeat(intervalMs: number): void {
    if (this.#isClosed) return;
    clearInterval(this.#livenessTimer);
    this.#livenessTimer = setInterval(() => setImmediate(() => this.#checkHeartbeat(intervalMs)), intervalMs * HEARTBEAT.check);
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  send(message: ProviderMessage): void {
    this.#write(JSON.stringify(message));
  }

  /** Sends a frame. `sent` is called once: after the write, or when the bytes will never be written. */
  sendFrame(bytes: Uint8Array, sent: () => void): void {
    if (this.#isClosed) sent();
    else this.#write(bytes, sent);
  }

  /** Pings a socket that may have died during sleep, and ends the connection without a pong in time. */
  probe(reason: string): void {
    if (this.#isClosed || this.#probeTimer !== null) return;
    this.#probeTimer = setTimeout(() => this.end(reason), this.liveness.probeMs ?? PROBE_MS);
    this.socket.ping(PROBE_PAYLOAD);
  }

  /** Sends earlier messages and the close frame, and waits up to a second for the coordinator's. */
  close(): void {
    if (this.#isClosed || this.#closeTimer !== null) return;
    this.#closeTimer = setTimeout(() => this.end('closed'), CLOSE_TIMEOUT_MS);
    this.socket.close(1000);
  }

  /** Ends the connection at once, without a close frame. */
  end(reason: string): void {
    this.writes.flush();
    this.socket.terminate();
    this.#close(reason);
  }

  #write(data: string | Uint8Array, sent?: () => void): void {
    if (this.#isClosed) return;
    if (this.socket.bufferedAmount > MAX_UNSENT_BYTES) {
      this.end('the coordinator does not read from the connection');
      sent?.();
      return;
    }
    this.writes.begin();
    this.socket.send(data, () => sent?.());
  }

  #receive(data: Buffer, isBinary: boolean): void {
    if (this.#isClosed) return;
    this.#noteActivity();
    if (isBinary) {
      let frame: Frame;
      try {
        frame = decodeFrame(data);
      } catch (error) {
        this.end(`the coordinator sent a bad frame: ${error instanceof Error ? error.message : 'unreadable'}`);
        return;
      }
      this.handlers.onFrame(frame);
      return;
    }
    const parsed = parseCoordinatorMessage(data.toString('utf8'));
    switch (parsed.kind) {
      case 'message':
        this.handlers.onMessage(parsed.message);
        return;
      case 'unknown_type':
        this.handlers.onUnknownMessage();
        return;
      case 'invalid':
        this.end(`the coordinator sent a bad message: ${parsed.reason}`);
        return;
      default:
        parsed satisfies never;
    }
  }

  #checkLiveness(): void {
    if (this.#isClosed) return;
    if (performance.now() - this.#lastActivityAt > this.liveness.silenceMs) this.end(SILENCE_REASON);
    else this.socket.ping();
  }

  #checkHeartbeat(intervalMs: number): void {
    if (this.#isClosed) return;
    const silentMs = performance.now() - this.#lastActivityAt;
    if (silentMs >= intervalMs * HEARTBEAT.silence) this.end(SILENCE_REASON);
    else if (silentMs >= intervalMs * HEARTBEAT.ping) this.socket.ping();
  }

  #noteActivity(): void {
    this.#lastActivityAt = performance.now();
  }

  #close(reason: string): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearInterval(this.#livenessTimer);
    if (this.#probeTimer !== null) clearTimeout(this.#probeTimer);
    if (this.#closeTimer !== null) clearTimeout(this.#closeTimer);
    this.handlers.onClosed(reason);
  }
}
