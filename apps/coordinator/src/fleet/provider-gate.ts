/**
 * The door for providers: turns `GET /provider/v1/socket` into a WebSocket and hands it to the fleet. What a connection may hold is
 * small until its provider has registered.
 */
import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import proxyAddress from '@fastify/proxy-addr';
import { MAX_TEXT_FRAME_BYTES } from '@inference/protocol';
import { WebSocketServer } from 'ws';
import { FairBudget } from '../fair-budget.js';
import { networkOf } from '../network-address.js';
import type { Fleet } from './fleet.js';
import { MAX_MESSAGE_BYTES } from './provider-socket.js';

export const PROVIDER_SOCKET_PATH = '/provider/v1/socket';
const MOST_CONNECTIONS = 20_000;
/** All connections that have not registered: 8192 of them, or 64 that send the most they may. */
const MAX_UNREGISTERED_BYTES = 32 * 2 ** 20;
const BYTES_PER_CONNECTION = 4096;
/** Bytes of one message before registration. Above the cap of a text frame, so that a message somewhat over it gets its reason. */
const MAX_UNREGISTERED_MESSAGE_BYTES = 2 * MAX_TEXT_FRAME_BYTES;

/** Whether a request asks for the WebSocket of providers. */
export function isProviderUpgrade({ method, url = '', headers }: IncomingMessage): boolean {
  return method === 'GET' && url.split('?', 1)[0] === PROVIDER_SOCKET_PATH && /(?:^|,)\s*websocket\s*(?:,|$)/i.test(headers.upgrade ?? '');
}

/** Listens for upgrades on an HTTP server; those of other requests are left to others. Returns the function that stops this. */
export function openProviderGate(server: Server, fleet: Fleet, trustedProxies: readonly string[]): () => void {
  const sockets = new WebSocketServer({ noServer: true, maxPayload: MAX_MESSAGE_BYTES, perMessageDeflate: false, autoPong: false });
  const unregistered = new FairBudget({
    maxBytes: MAX_UNREGISTERED_BYTES,
    freeMultiple: 1,
    bytesPerClaim: BYTES_PER_CONNECTION,
    evictsOwn: true,
  });
  const isTrusted = proxyAddress.compile([...trustedProxies]);
  const upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    if (!isProviderUpgrade(request)) return;
    if (fleet.connections >= MOST_CONNECTIONS) {
      refuse(socket);
      return;
    }
    const holder = networkOf(proxyAddress(request, isTrusted) ?? '');
    const claim = unregistered.open({ holder }, () => socket.destroy());
    if (claim === null) {
      refuse(socket);
      return;
    }
    socket.once('close', () => claim.release());
    sockets.handleUpgrade(request, socket, head, (webSocket) => {
      const session = fleet.accept(webSocket, socket, () => {
        claim.release();
        socket.off('data', count);
        webSocket.off('message', took);
      });
      let unread = 0;
      // The rest is dropped: a closing handshake would read, and hold, it all.
      const refuseRest = (message: string): void => {
        socket.removeAllListeners('data');
        socket.resume();
        session.reject('too_large', message);
      };
      const count = (chunk: Buffer): void => {
        // The chunk that brought the registration is counted after it.
        if (!claim.isOpen) return;
        unread += chunk.length;
        if (unread > MAX_UNREGISTERED_MESSAGE_BYTES) refuseRest('a message before registration is too large');
        else if (!claim.grow(chunk.length)) refuseRest('too much of what was sent before registration waits to be read');
      };
      const took = (): void => {
        claim.shrink(unread);
        unread = 0;
      };
      socket.on('data', count);
      webSocket.on('message', took);
    });
  };
  server.on('upgrade', upgrade);
  return () => {
    server.off('upgrade', upgrade);
    sockets.close();
  };
}

function refuse(socket: Duplex): void {
  socket.on('error', () => {});
  // No HTTP server looks after it any more: a peer that leaves its side open would keep it for ever.
  socket.end('HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n', () => socket.destroy());
}
