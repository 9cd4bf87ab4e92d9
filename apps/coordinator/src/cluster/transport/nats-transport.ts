/** `NatsTransport`: `ClusterTransport` over NATS. Without a connection, it tries the servers in turn, with backoff, and resubscribes. */
import { type Clock, systemClock } from './clock.js';
import type { ClusterTransport, MessageHandler, TransportEvent } from './cluster-transport.js';
import {
  errorText,
  loadNatsClient,
  MIN_MAX_PAYLOAD_BYTES,
  type NatsClient,
  NatsConnection,
  type NatsCredentials,
  parseServerUrl,
} from './nats-connection.js';

const MIN_BACKOFF_MS = 50;
const MAX_BACKOFF_MS = 1_000;
/** Short, because a server that does not answer delays the attempt at the next one. Doubles with each round over all servers. */
const MIN_DIAL_TIMEOUT_MS = 2_000;
const MAX_DIAL_TIMEOUT_MS = 10_000;
/** Maximum bytes in the outgoing buffer. Messages that would exceed it are dropped. */
const MAX_BUFFERED_BYTES = 64 * 1024 * 1024;
const SUBJECT = /^[\x21-\x7e]+$/;

export interface NatsTransportOptions extends NatsCredentials {
  /** URLs of NATS servers, tried in turn. */
  readonly servers: readonly string[];
  /** Name of this connection in the server's monitoring. */
  readonly name: string;
  readonly log: (event: TransportEvent) => void;
  readonly clock?: Clock;
  readonly random?: () => number;
}

interface Subscription {
  readonly subject: string;
  readonly handler: MessageHandler;
  cancel: () => void;
}

export class NatsTransport implements ClusterTransport {
  readonly #options: NatsTransportOptions;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #subscriptions = new Set<Subscription>();
  readonly #stateListeners = new Set<(isConnected: boolean) => void>();
  readonly #drainListeners = new Set<() => void>();
  #client: NatsClient | null = null;
  #connection: NatsConnection | null = null;
  #dialling: Promise<void> = Promise.resolve();
  #failedDials = 0;
  #nextServer: number;
  #cancelBackoff: () => void = () => {};
  #isClosed = false;

  constructor(options: NatsTransportOptions) {
    if (options.servers.length === 0) throw new Error('no NATS server is configured');
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? Math.random;
    this.#nextServer = Math.floor(this.#random() * options.servers.length);
    this.#dial();
  }

  get isConnected(): boolean {
    return this.#connection !== null;
  }

  get maxPayloadBytes(): number {
    return this.#connection?.maxPayloadBytes ?? MIN_MAX_PAYLOAD_BYTES;
  }

  get bufferedBytes(): number {
    return this.#connection?.bufferedBytes ?? 0;
  }

  publish(subject: string, payload: Uint8Array, noRespondersTo?: string): boolean {
    const connection = this.#connection;
    if (connection === null || payload.length > connection.maxPayloadBytes || !SUBJECT.test(subject)) return false;
    if (connection.bufferedBytes + payload.length > MAX_BUFFERED_BYTES) return false;
    try {
      connection.publish(subject, payload, noRespondersTo);
      return true;
    } catch (error) {
      // The client may have closed the connection without having reported the end yet.
      this.#report({ event: 'server_error', reason: errorText(error) });
      return false;
    }
  }

  subscribe(subject: string, handler: MessageHandler): () => void {
    const subscription: Subscription = { subject, handler, cancel: () => {} };
    this.#subscriptions.add(subscription);
    if (this.#connection !== null) this.#attach(subscription, this.#connection);
    return () => {
      if (this.#subscriptions.delete(subscription)) subscription.cancel();
    };
  }

  onState(listener: (isConnected: boolean) => void): () => void {
    this.#stateListeners.add(listener);
    return () => this.#stateListeners.delete(listener);
  }

  onDrain(listener: () => void): () => void {
    this.#drainListeners.add(listener);
    return () => this.#drainListeners.delete(listener);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelBackoff();
    const connection = this.#connection;
    this.#connection = null;
    connection?.close();
    await this.#dialling;
  }

  #dial(): void {
    this.#dialling = this.#dialNext().catch((error: unknown) => this.#report({ event: 'handler_failed', reason: errorText(error) }));
  }

  async #dialNext(): Promise<void> {
    const url = this.#options.servers[this.#nextServer++ % this.#options.servers.length] ?? '';
    let server = 'invalid URL';
    try {
      server = parseServerUrl(url).server;
      this.#client ??= await loadNatsClient();
      const connection = await NatsConnection.dial(this.#client, {
        url,
        name: this.#options.name,
        credentials: this.#options,
        timeoutMs: Math.min(MAX_DIAL_TIMEOUT_MS, MIN_DIAL_TIMEOUT_MS * 2 ** this.#failedRounds),
        clock: this.#clock,
      });
      if (this.#isClosed) connection.close();
      else this.#connected(connection, server);
    } catch (error) {
      this.#failedDials++;
      this.#report({ event: 'dial_failed', server, reason: errorText(error) });
      this.#redialAfter(this.#backoffMs());
    }
  }

  #connected(connection: NatsConnection, server: string): void {
    this.#failedDials = 0;
    this.#connection = connection;
    connection.onServerError = (error) => this.#report({ event: 'server_error', server, reason: errorText(error) });
    connection.onEnd = (reason) => {
      if (this.#connection !== connection) return;
      this.#connection = null;
      this.#report({ event: 'disconnected', server, reason });
      this.#emitState(false);
      // Random, because all coordinators that were connected to a lost server reconnect at the same time.
      this.#redialAfter(this.#random() * MIN_BACKOFF_MS);
    };
    connection.onDrain(() => {
      for (const listener of this.#drainListeners) this.#guard(listener);
    });
    for (const subscription of this.#subscriptions) this.#attach(subscription, connection);
    this.#report({ event: 'connected', server });
    this.#emitState(true);
  }

  #redialAfter(ms: number): void {
    if (!this.#isClosed) this.#cancelBackoff = this.#clock.setTimer(ms, () => this.#dial());
  }

  /** Random delay before the next attempt. The maximum doubles with each round over all servers. */
  #backoffMs(): number {
    return MIN_BACKOFF_MS / 2 + this.#random() * Math.min(MAX_BACKOFF_MS, MIN_BACKOFF_MS * 2 ** this.#failedRounds);
  }

  /** Rounds over all servers without success, at most 10. */
  get #failedRounds(): number {
    return Math.min(10, Math.floor(this.#failedDials / this.#options.servers.length));
  }

  #attach(subscription: Subscription, connection: NatsConnection): void {
    subscription.cancel = connection.subscribe(subscription.subject, (subject, payload, isNoResponders) => {
      this.#guard(() => subscription.handler(subject, payload, isNoResponders));
    });
  }

  #emitState(isConnected: boolean): void {
    for (const listener of this.#stateListeners) this.#guard(() => listener(isConnected));
  }

  #guard(callback: () => void): void {
    try {
      callback();
    } catch (error) {
      // Logs only the error's name, because its message could quote content.
      this.#report({ event: 'handler_failed', reason: error instanceof Error ? error.name : typeof error });
    }
  }

  #report(event: TransportEvent): void {
    this.#options.log(event);
  }
}
