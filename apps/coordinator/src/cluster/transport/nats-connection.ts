/**
 * `NatsConnection`: one connection to a NATS server.
 *
 * Uses internal parts of the NATS client, because its own `connect` leaks sockets (nats.js #433).
 */
import type { NatsConnectionImpl } from '@nats-io/nats-core/internal';
import type { NodeTransport } from '@nats-io/transport-node/lib/node_transport.js';
import type { Clock } from './clock.js';

/** Minimum `max_payload` that a server must have, because links send envelopes up to this size. */
export const MIN_MAX_PAYLOAD_BYTES = 768 * 1024;
const PING_INTERVAL_MS = 1_000;
/** Ping intervals without a reply after which the connection is considered lost. */
const MAX_UNANSWERED_INTERVALS = 3;

export interface NatsCredentials {
  /** Requires TLS. `caFile`: PEM file of certificate authorities. */
  readonly tls?: { readonly caFile?: string };
  /** Seed of the nkey that identifies this coordinator; begins with `SU`. */
  readonly nkeySeed?: string;
}

export interface DialOptions {
  readonly url: string;
  /** Name of this connection in the server's monitoring. */
  readonly name: string;
  readonly credentials: NatsCredentials;
  /** Maximum time for TCP, TLS and the login together. */
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** Parts of the NATS client packages that are used here. */
export interface NatsClient {
  readonly Connection: typeof NatsConnectionImpl;
  readonly setTransportFactory: typeof import('@nats-io/nats-core/internal').setTransportFactory;
  readonly nkeyAuthenticator: typeof import('@nats-io/nats-core/internal').nkeyAuthenticator;
  readonly Socket: typeof NodeTransport;
  readonly resolveHost: typeof import('@nats-io/transport-node/lib/node_transport.js').nodeResolveHost;
}

/** Imports the client on first use, so that a coordinator without a cluster does not load it. */
export async function loadNatsClient(): Promise<NatsClient> {
  // Imports default exports, because neither Node.js nor the bundle finds all named exports of these CommonJS modules.
  const { default: core } = await import('@nats-io/nats-core/internal');
  const { default: node } = await import('@nats-io/transport-node/lib/node_transport.js');
  return {
    Connection: core.NatsConnectionImpl,
    setTransportFactory: core.setTransportFactory,
    nkeyAuthenticator: core.nkeyAuthenticator,
    Socket: node.NodeTransport,
    resolveHost: node.nodeResolveHost,
  };
}

/** Settles with the last attempt to connect in this process; see {@link NatsConnection.dial}. */
let lastDial: Promise<void> = Promise.resolve();

export class NatsConnection {
  readonly #connection: NatsConnectionImpl;
  readonly #socket: NodeTransport;
  readonly #clock: Clock;
  #cancelPing: () => void = () => {};
  #isClosed = false;
  /** Ping intervals since the last reply. */
  #unanswered = 0;
  /** Called once if the connection ends without a call of `close`. */
  onEnd: (reason: string) => void = () => {};
  onServerError: (error: Error) => void = () => {};

  private constructor(connection: NatsConnectionImpl, socket: NodeTransport, clock: Clock) {
    this.#connection = connection;
    this.#socket = socket;
    this.#clock = clock;
    void connection.closed().then((error) => this.#end(error instanceof Error ? errorText(error) : 'closed by the server'));
    void this.#readStatus();
    this.#schedulePing();
  }

  /** Connects to a server. Attempts run one after the other, because the client's socket factory is global to the process. */
  static dial(client: NatsClient, options: DialOptions): Promise<NatsConnection> {
    const dial = lastDial.then(() => NatsConnection.#dial(client, options));
    lastDial = dial.then(
      () => {},
      () => {},
    );
    return dial;
  }

  static async #dial(client: NatsClient, { url, name, credentials, timeoutMs, clock }: DialOptions): Promise<NatsConnection> {
    const { server, user, pass } = parseServerUrl(url);
    const sockets: NodeTransport[] = [];
    client.setTransportFactory({
      factory: () => {
        const socket = new client.Socket();
        sockets.push(socket);
        return socket;
      },
      dnsResolveFn: client.resolveHost,
    });
    try {
      const connection = (await client.Connection.connect({
        servers: [server],
        name,
        reconnect: false,
        noEcho: true,
        noAsyncTraces: true,
        ignoreClusterUpdates: true,
        timeout: timeoutMs,
        ...(credentials.tls === undefined ? {} : { tls: credentials.tls }),
        ...(credentials.nkeySeed === undefined
          ? {}
          : { authenticator: client.nkeyAuthenticator(new TextEncoder().encode(credentials.nkeySeed)) }),
        ...(user === '' ? {} : { user, pass }),
      })) as NatsConnectionImpl;
      const socket = sockets.at(-1);
      if (socket === undefined) throw new Error('the client made no socket');
      const maxPayload = connection.info?.max_payload ?? 0;
      if (maxPayload < MIN_MAX_PAYLOAD_BYTES) {
        void connection.close();
        throw new Error(`max_payload is ${maxPayload}, and must be at least ${MIN_MAX_PAYLOAD_BYTES}`);
      }
      return new NatsConnection(connection, socket, clock);
    } catch (error) {
      for (const socket of sockets) socket.discard();
      throw error;
    }
  }

  get maxPayloadBytes(): number {
    return this.#connection.info?.max_payload ?? MIN_MAX_PAYLOAD_BYTES;
  }

  get bufferedBytes(): number {
    return this.#connection.protocol.outbound.size() + (this.#socket.socket?.writableLength ?? 0);
  }

  publish(subject: string, payload: Uint8Array, reply: string | undefined): void {
    if (reply === undefined) this.#connection.publish(subject, payload);
    else this.#connection.publish(subject, payload, { reply });
  }

  /** `handler` must not throw, because an exception would stop the client from reading. Returns a cancel function. */
  subscribe(subject: string, handler: (subject: string, payload: Uint8Array, isNoResponders: boolean) => void): () => void {
    const subscription = this.#connection.subscribe(subject, {
      callback: (error, message) => {
        if (error === null) handler(message.subject, message.data, message.data.length === 0 && message.headers?.code === 503);
      },
    });
    return () => {
      if (!this.#isClosed) subscription.unsubscribe();
    };
  }

  onDrain(listener: () => void): void {
    this.#socket.socket.on('drain', listener);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cancelPing();
    const socket = this.#socket.socket;
    // `end` sends buffered messages first. The client's own `close` would destroy the socket at once.
    queueMicrotask(() => socket?.end());
    this.#cancelPing = this.#clock.setTimer(PING_INTERVAL_MS, () => this.#discard());
    socket?.once('close', () => {
      this.#cancelPing();
      this.#discard();
    });
  }

  #discard(): void {
    this.#socket.discard();
    void this.#connection.close();
  }

  #end(reason: string): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cancelPing();
    this.#discard();
    this.onEnd(reason);
  }

  /** Pings at an interval. Counts intervals, not time, so that a stall of this process is not mistaken for a lost server. */
  #schedulePing(): void {
    this.#cancelPing = this.#clock.setTimer(PING_INTERVAL_MS, () => {
      if (this.#unanswered >= MAX_UNANSWERED_INTERVALS) return this.#end('the server does not answer');
      if (this.#unanswered === 0) {
        this.#connection.flush().then(
          () => {
            this.#unanswered = 0;
          },
          () => {},
        );
      }
      this.#unanswered++;
      this.#schedulePing();
    });
  }

  async #readStatus(): Promise<void> {
    for await (const status of this.#connection.status()) {
      if (status.type === 'error' && !this.#isClosed) this.onServerError(status.error);
    }
  }
}

/** Splits a server URL into address, user and password. The scheme is ignored: `credentials.tls` decides whether TLS is used. */
export function parseServerUrl(url: string): { readonly server: string; readonly user: string; readonly pass: string } {
  const { host, username, password } = new URL(url.includes('://') ? url : `nats://${url}`);
  return { server: host, user: decodeURIComponent(username), pass: decodeURIComponent(password) };
}

/** Text of an error of the NATS client or server, for the log. Their messages contain subjects, hosts and codes, never payloads. */
export function errorText(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}`.slice(0, 300) : typeof error;
}
