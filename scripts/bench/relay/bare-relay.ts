/**
 * Baseline program of the relay bench: passes HTTP requests over one WebSocket to a provider, and its messages back as responses.
 *
 * Without API keys, encryption or checks. A header of five bytes identifies the request of a message.
 */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';

/** Request number (32 bits, big endian), then a flag: 1 for the last message of a response, else 0. */
const HEADER_BYTES = 5;

const waiting = new Map<number, ServerResponse>();
let upstream: WebSocket | null = null;
let next = 0;

const server = createServer((request, response) => {
  const parts: Buffer[] = [];
  request.on('data', (part: Buffer) => parts.push(part));
  request.on('end', () => {
    const body = Buffer.concat(parts);
    const stream = body.includes('"stream":true');
    const id = next++ & 0xffff_ffff;
    waiting.set(id, response);
    response.writeHead(200, { 'content-type': stream ? 'text/event-stream; charset=utf-8' : 'application/json' });
    const header = Buffer.alloc(HEADER_BYTES);
    header.writeUInt32BE(id);
    header[4] = stream ? 1 : 0;
    upstream?.send(Buffer.concat([header, body]));
  });
});

new WebSocketServer({ server, perMessageDeflate: false }).on('connection', (socket) => {
  upstream = socket;
  socket.on('message', (message: Buffer) => {
    const id = message.readUInt32BE(0);
    const response = waiting.get(id);
    if (response === undefined) return;
    if (message.length > HEADER_BYTES) response.write(message.subarray(HEADER_BYTES));
    if (message[4] === 1) {
      response.end();
      waiting.delete(id);
    }
  });
});

server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => process.send?.({ port: (server.address() as AddressInfo).port }));
process.on('disconnect', () => process.exit());
