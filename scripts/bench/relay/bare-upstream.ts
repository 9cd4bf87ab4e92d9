/** HTTP server behind the other gateway of the relay bench. Answers each request at once with the same response. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PLAIN_ANSWER } from './answers.js';

const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(PLAIN_ANSWER) };

const server = createServer((request, response) => {
  request.resume();
  request.on('end', () => response.writeHead(200, headers).end(PLAIN_ANSWER));
});
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
process.on('disconnect', () => process.exit());
