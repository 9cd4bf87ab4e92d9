/** `closePipelined` closes waiting pipelined responses (RFC 9112 section 9.3.2) with their connection, which Node.js does not. */
import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Closes pipelined responses when their connection ends before their turn. */
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

/** Responses to close with the connection. */
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
