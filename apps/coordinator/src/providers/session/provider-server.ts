/** Accepts the WebSockets of providers at `GET /provider/v1/socket`. Limits their number and the memory for unread input. */
import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import proxyAddress from '@fastify/proxy-addr';
import { MAX_TEXT_FRAME_BYTES } from '@inference/protocol';
import { type WebSocket, WebSocketServer } from 'ws';
import { type Claim, FairBudget } from '../../limits/fair-budget.js';
import { networkOf } from '../../limits/network-address.js';
import type { ProviderRegistry } from '../provider-registry.js';
import { MAX_MESSAGE_BYTES } from './provider-socket.js';

export const PROVIDER_SOCKET_PATH = '/provider/v1/socket';
const MAX_CONNECTIONS = 20_000;
/** Memory for all unregistered connections together. Enough for 8192 normal connections, or for 64 that send their maximum. */
const MAX_UNREGISTERED_BYTES = 32 * 2 ** 20;
const BYTES_PER_CONNECTION = 4096;
/** Maximum bytes of a message before registration. Twice the message limit, so that a slightly longer message gets an exact error. */
const MAX_UNREGISTERED_MESSAGE_BYTES = 2 * MAX_TEXT_FRAME_BYTES;
/** Memory for the incomplete messages of all registered providers: 256 frames of maximum size. Anybody can register a provider. */
const MAX_UNFINISHED_BYTES = 128 * 2 ** 20;
/** Bytes of an incomplete message that are not counted, because most messages arrive in one piece. */
const UNCOUNTED_BYTES = 16 * 1024;

/** Whether a request is a WebSocket upgrade of a provider. */
export function isProviderUpgrade({ method, url = '', headers }: IncomingMessage): boolean {
  return method === 'GET' && url.split('?', 1)[0] === PROVIDER_SOCKET_PATH && /(?:^|,)\s*websocket\s*(?:,|$)/i.test(headers.upgrade ?? '');
}

/**
 * Why an upgrade is refused: too many connections, or too much memory for unregistered ones (`too_many`), or invalid headers according to
 * the WebSocket library (`message`).
 */
export type UpgradeRefusal = { readonly kind: 'too_many' } | { readonly kind: 'invalid'; readonly message: string };

interface ProviderServerOptions {
  readonly registry: ProviderRegistry;
  readonly trustedProxies: readonly string[];
  /** Answers a refused upgrade and ends the connection. */
  readonly refuse: (socket: Duplex, refusal: UpgradeRefusal) => void;
}

/** Handles upgrade requests of an HTTP server. Returns a function that unsubscribes. */
export function openProviderServer(server: Server, { registry, trustedProxies, ...options }: ProviderServerOptions): () => void {
  const refuse = (socket: Duplex, refusal: UpgradeRefusal): void => {
    socket.on('error', () => {});
    // Destroyed explicitly: a socket without an HTTP server would stay half-open until the peer closes it.
    socket.once('finish', () => socket.destroy());
    options.refuse(socket, refusal);
  };
  const sockets = new WebSocketServer({ noServer: true, maxPayload: MAX_MESSAGE_BYTES, perMessageDeflate: false, autoPong: false });
  sockets.on('wsClientError', ({ message }, socket) => refuse(socket, { kind: 'invalid', message }));
  const unregistered = new FairBudget({
    maxBytes: MAX_UNREGISTERED_BYTES,
    freeMultiple: 1,
    bytesPerClaim: BYTES_PER_CONNECTION,
    evictsOwn: true,
  });
  const unfinished = new FairBudget({ maxBytes: MAX_UNFINISHED_BYTES, freeMultiple: 1, evictsOwn: true });
  const isTrusted = proxyAddress.compile([...trustedProxies]);
  const upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    if (!isProviderUpgrade(request)) return;
    if (registry.connections >= MAX_CONNECTIONS) {
      refuse(socket, { kind: 'too_many' });
      return;
    }
    const holder = networkOf(proxyAddress(request, isTrusted) ?? '');
    const claim = unregistered.open({ holder }, () => socket.destroy());
    if (claim === null) {
      refuse(socket, { kind: 'too_many' });
      return;
    }
    socket.once('close', () => claim.release());
    sockets.handleUpgrade(request, socket, head, (webSocket) => {
      let endLimit = (): void => {};
      const onRegistered = (): void => {
        claim.release();
        endLimit();
        boundUnfinished(webSocket, socket, (onEvicted) => unfinished.open({ holder }, onEvicted));
      };
      const session = registry.accept(webSocket, socket, onRegistered, holder);
      endLimit = boundUnregistered(webSocket, socket, { claim, reject: (message) => session.reject('too_large', message) });
    });
  };
  server.on('upgrade', upgrade);
  return () => {
    server.off('upgrade', upgrade);
    sockets.close();
  };
}

interface UnregisteredLimit {
  /** Memory for unread input. Released at the registration. */
  readonly claim: Claim;
  readonly reject: (message: string) => void;
}

/** Rejects a connection with too much unread input before its registration. Returns a function that ends the limit. */
function boundUnregistered(webSocket: WebSocket, socket: Duplex, { claim, reject }: UnregisteredLimit): () => void {
  let unread = 0;
  // Stops reading, because the closing handshake would otherwise read and buffer all further input.
  const rejectFurtherInput = (message: string): void => {
    socket.removeAllListeners('data');
    socket.resume();
    reject(message);
  };
  const onData = (chunk: Buffer): void => {
    // The listener is still called for the chunk that completed the registration, although the claim is released.
    if (!claim.isOpen) return;
    unread += chunk.length;
    if (unread > MAX_UNREGISTERED_MESSAGE_BYTES) rejectFurtherInput('a message before registration is too large');
    else if (!claim.grow(chunk.length)) rejectFurtherInput('too much of what was sent before registration waits to be read');
  };
  const onMessage = (): void => {
    claim.shrink(unread);
    unread = 0;
  };
  socket.on('data', onData);
  webSocket.on('message', onMessage);
  return () => {
    socket.off('data', onData);
    webSocket.off('message', onMessage);
  };
}

/** Terminates a registered connection if the budget has no room for its incomplete message. `open` claims memory for one message. */
function boundUnfinished(webSocket: WebSocket, socket: Duplex, open: (onEvicted: () => void) => Claim | null): void {
  let claim: Claim | null = null;
  let unread = 0;
  let lastChunkBytes = 0;
  const onData = (chunk: Buffer): void => {
    lastChunkBytes = chunk.length;
    unread += chunk.length;
    if (unread <= UNCOUNTED_BYTES) return;
    claim ??= open(() => webSocket.terminate());
    const more = unread - (claim?.bytes ?? 0);
    if (claim === null || (more > 0 && !claim.grow(more))) webSocket.terminate();
  };
  const onMessage = (data: Buffer): void => {
    // At most the chunk with the end of this message is still unread. This limit keeps headers of fragments from adding up.
    unread = Math.min(Math.max(0, unread - frameBytes(data.length)), lastChunkBytes);
    release();
  };
  // Control frames may arrive between the fragments of an incomplete message.
  const onControlFrame = (data: Buffer): void => {
    unread = Math.max(0, unread - frameBytes(data.length));
  };
  const release = (): void => {
    claim?.release();
    claim = null;
  };
  // Runs before the library's listener, which emits the messages of a chunk while it reads the chunk.
  socket.prependListener('data', onData);
  webSocket.on('message', onMessage);
  webSocket.on('ping', onControlFrame);
  webSocket.on('pong', onControlFrame);
  socket.once('close', () => {
    socket.off('data', onData);
    release();
  });
}

/** Size of a client's frame on the wire (RFC 6455 section 5.2). */
function frameBytes(payloadBytes: number): number {
  return payloadBytes + (payloadBytes < 126 ? 6 : payloadBytes < 65_536 ? 8 : 14);
}
