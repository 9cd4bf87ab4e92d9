/** The slow client of tests and soaks reads as much as configured, and terminates. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { SlowClient } from './support/slow-client.js';

it.each([
  [0.4, 1],
  [1.5, 2],
  [3, 3],
])('reads %d bytes as %d', async (asked, read) => {
  const server = createServer((_request, response) => response.end('twelve bytes'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    const client = await new SlowClient({ baseUrl, apiKey: 'none' } as never, { model: 'any' } as never).send();
    await client.readBytes(asked);
    expect(client.read).toHaveLength(read);
    client.leave();
    await client.closed;
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});
