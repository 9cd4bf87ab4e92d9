/**
 * `closePipelined` closes pipelined responses (RFC 9112 section 9.3.2) whose connection closes before their turn.
 *
 * Node.js emits `close` only for the response that currently owns the socket.
 */
import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export function closePipelined(server: Server): void {
  const responsesBySocket = new WeakMap<Socket, Set<ServerResponse>>();
  server.on('request', ({ socket }, response) => {
    // A response without a socket waits for its turn.
    if (response.socket !== null) return;
    const responses = responsesBySocket.get(socket) ?? responsesClosedWith(socket);
    responsesBySocket.set(socket, responses);
    responses.add(response);
    response.once('socket', () => responses.delete(response));
  });
}

function responsesClosedWith(socket: Socket): Set<ServerResponse> {
  const responses = new Set<ServerResponse>();
  socket.once('close', () => {
    for (const response of responses) {
      response.destroy();
      response.emit('close');
    }
  });
  return responses;
}
