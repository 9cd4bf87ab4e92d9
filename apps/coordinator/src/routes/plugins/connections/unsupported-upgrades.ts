/**
 * `serveUpgradesAsRequests` serves requests with an unsupported `Upgrade` as ordinary requests (RFC 9110 section 7.8).
 *
 * Once a listener for upgrades exists, Node.js passes the raw socket of every upgrade request to it. This listener pushes the request back
 * into the socket without `Upgrade`, and lets the server read the connection again.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/** `isHandled`: whether another listener answers the upgrade request. */
export function serveUpgradesAsRequests(server: Server, isHandled: (request: IncomingMessage) => boolean): void {
  const pendingResponses = new WeakMap<Duplex, Set<ServerResponse>>();
  const waitingReplays = new WeakMap<Duplex, () => void>();
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    const responses = pendingResponses.get(socket) ?? new Set();
    pendingResponses.set(socket, responses.add(response));
    response.once('close', () => {
      responses.delete(response);
      if (responses.size > 0) return;
      const replay = waitingReplays.get(socket);
      waitingReplays.delete(socket);
      replay?.();
    });
  });
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, bytesAfterHead: Buffer) => {
    if (isHandled(request)) return;
    const responses = pendingResponses.get(socket) ?? new Set();
    const ignoreError = (): void => {};
    // Node.js removes its `drain` listener on an upgrade, but an unfinished response may wait for the event.
    const passDrain = (): void => {
      for (const response of responses) if (response.socket === socket) response.emit('drain');
    };
    const replay = (): void => {
      if (socket.destroyed) return;
      socket.off('error', ignoreError);
      socket.off('drain', passDrain);
      // The end of an earlier response has set the keep-alive timeout of the idle connection.
      if ('setTimeout' in socket && typeof socket.setTimeout === 'function') socket.setTimeout(0);
      socket.unshift(Buffer.concat([ordinaryHead(request), bytesAfterHead]));
      server.emit('connection', socket);
    };
    // Without a listener, a socket error would be uncaught until the server owns the socket again.
    socket.on('error', ignoreError);
    // Responses to earlier requests of the connection must be sent first.
    if (responses.size === 0) replay();
    else {
      socket.on('drain', passDrain);
      waitingReplays.set(socket, replay);
    }
  });
}

/** Head of the original request, without the headers of the upgrade. */
function ordinaryHead({ method, url, httpVersion, rawHeaders }: IncomingMessage): Buffer {
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? '';
    const value = rawHeaders[index + 1] ?? '';
    const lowerName = name.toLowerCase();
    if (lowerName === 'connection') {
      const options = value.split(',').filter((option) => !/^\s*(?:upgrade|http2-settings)?\s*$/i.test(option));
      if (options.length > 0) lines.push(`${name}: ${options.join(',').trim()}`);
    } else if (lowerName !== 'upgrade' && lowerName !== 'http2-settings') lines.push(`${name}: ${value}`);
  }
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}
