/** The door for providers: turns `GET /provider/v1/socket` into a WebSocket and hands it to the fleet. */
import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';
import type { Fleet } from './fleet.js';
import { MAX_MESSAGE_BYTES } from './provider-socket.js';

export const PROVIDER_SOCKET_PATH = '/provider/v1/socket';
const MOST_CONNECTIONS = 20_000;

/** Listens for upgrades on an HTTP server. Returns the function that stops this. */
export function openProviderGate(server: Server, fleet: Fleet): () => void {
  const sockets = new WebSocketServer({ noServer: true, maxPayload: MAX_MESSAGE_BYTES, perMessageDeflate: false, autoPong: false });
  const upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    const path = (request.url ?? '').split('?', 1)[0];
    if (path !== PROVIDER_SOCKET_PATH) refuse(socket, '404 Not Found');
    else if (fleet.connections >= MOST_CONNECTIONS) refuse(socket, '503 Service Unavailable');
    else sockets.handleUpgrade(request, socket, head, (webSocket) => fleet.accept(webSocket, socket));
  };
  server.on('upgrade', upgrade);
  return () => {
    server.off('upgrade', upgrade);
    sockets.close();
  };
}

function refuse(socket: Duplex, status: string): void {
  socket.on('error', () => {});
  // No HTTP server looks after it any more: a peer that leaves its side open would keep it for ever.
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`, () => socket.destroy());
}
