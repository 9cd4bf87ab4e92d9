import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect, it } from 'vitest';
import { serveUpgradesAsRequests } from '../../../src/routes/plugins/connections/unsupported-upgrades.js';
import { until } from '../../support/harness.js';

it('a response that waits for its client continues when a request with an Upgrade follows on the connection', async () => {
  const parts = 500;
  let isWaiting = false;
  const server = createServer(async (request, response) => {
    if (request.url === '/long') {
      for (let part = 0; part < parts; part++) {
        if (response.write(Buffer.alloc(65_536, 'x'))) continue;
        isWaiting = true;
        await new Promise((resolve) => response.once('drain', resolve));
      }
    }
    response.end(`end of ${request.url}`);
  });
  let upgrades = 0;
  server.on('upgrade', () => upgrades++);
  serveUpgradesAsRequests(server, () => false);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  try {
    client.pause();
    client.write('GET /long HTTP/1.1\r\nhost: x\r\n\r\nGET /next HTTP/1.1\r\nhost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n');
    await until(() => isWaiting && upgrades === 1);
    let bytes = 0;
    let tail = '';
    client.on('data', (chunk) => {
      bytes += chunk.length;
      tail = (tail + String(chunk)).slice(-100);
    });
    client.resume();
    await until(() => tail.endsWith('end of /next'));
    expect(bytes).toBeGreaterThan(parts * 65_536);
  } finally {
    client.destroy();
    await new Promise((resolve) => server.close(resolve));
  }
});
