import { createServer } from 'node:http';
import { expect, test } from 'vitest';
import { addressOf, closeServer, listenLocally } from '../../../../../test/support/local-server.js';
import { ClientConnection } from '../../../src/inference/delivery/client-connection.js';

test('a header without a value is absent', async () => {
  const server = createServer((_request, response) => {
    const client = new ClientConnection(response, 600_000, null, { 'X-Request-Id': 'req_1', 'Access-Control-Allow-Origin': undefined });
    client.writeHead(200, { 'X-Empty': '', 'X-Absent': undefined, 'X-List': ['a', 'b'] });
    client.end('ok');
  });
  await listenLocally(server);
  try {
    const { headers } = await fetch(addressOf(server));
    const own = [...headers].filter(([name]) => name.startsWith('x-') || name.startsWith('access-'));
    expect(Object.fromEntries(own)).toEqual({ 'x-request-id': 'req_1', 'x-empty': '', 'x-list': 'a, b' });
  } finally {
    await closeServer(server);
  }
});
