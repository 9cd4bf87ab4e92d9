/** The slow client of tests and soaks reads as much as configured, and terminates. */
import { createServer } from 'node:http';
import { expect, it } from 'vitest';
import { closeServer, listenLocally } from './support/local-server.js';
import { SlowClient } from './support/slow-client.js';

it.each([
  [0.4, 1],
  [1.5, 2],
  [3, 3],
])('reads %d bytes as %d', async (asked, read) => {
  const server = createServer((_request, response) => response.end('twelve bytes'));
  const baseUrl = await listenLocally(server);
  try {
    const client = await new SlowClient({ baseUrl, apiKey: 'none' } as never, { model: 'any' } as never).send();
    await client.readBytes(asked);
    expect(client.read).toHaveLength(read);
    client.leave();
    await client.closed;
  } finally {
    await closeServer(server);
  }
});
