/** API keys while PostgreSQL is unreachable: a key that is not cached gets 503 with `Retry-After`. */
import { afterEach, expect, it } from 'vitest';
import { TcpProxy } from '../../../../../test/support/tcp-proxy.js';
import { describePostgres, type TestDatabase } from '../../support/databases.js';
import { errorOf, type Harness, startCoordinator } from '../../support/harness.js';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function startBehindProxy(database: TestDatabase): Promise<{ harness: Harness; proxy: TcpProxy }> {
  cleanups.push(() => database.remove());
  const url = new URL('url' in database.target ? database.target.url : '');
  const proxy = await TcpProxy.start(`http://${url.hostname}:${url.port || 5432}`, { isWebSocket: false });
  url.hostname = '127.0.0.1';
  url.port = new URL(proxy.address).port;
  const harness = await startCoordinator({ config: { databaseUrl: url.toString() } });
  cleanups.push(() => harness.close());
  return { harness, proxy };
}

describePostgres('an API key that is not cached', (fresh) => {
  it('gets 503 with Retry-After while the database is away', async () => {
    const { harness, proxy } = await startBehindProxy(await fresh());
    const { apiKey } = await harness.customer(100);
    await proxy.close();
    const response = await harness.get('/v1/payments/balance', apiKey);
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5']);
    expect((await errorOf(response)).code).toBe('billing_unavailable');
  });
});
