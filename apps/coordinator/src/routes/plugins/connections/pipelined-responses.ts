/**
 * Requests that came behind others on their connection (RFC 9112 section 9.3.2). Their responses have no socket before their turn, so
 * that Node does not close them with the connection: whoever waits for that, to stop a job or to let go of a body, would wait for ever.
 */
import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Closes such responses when their connection ends before their turn. */
export function closePipelined(server: Server): void {
  const waiting = new WeakMap<Socket, Set<ServerResponse>>();
  server.on('request', ({ socket }, response) => {
    if (response.socket !== null) return;
    const behind = waiting.get(socket) ?? follow(socket);
    waiting.set(socket, behind);
    behind.add(response);
    response.once('socket', () => behind.delete(response));
  });
}

/** Responses that are closed with this connection. */
function follow(socket: Socket): Set<ServerResponse> {
  const behind = new Set<ServerResponse>();
  socket.once('close', () => {
    for (const response of behind) {
      response.destroy();
      response.emit('close');
    }
  });
  return behind;
}
