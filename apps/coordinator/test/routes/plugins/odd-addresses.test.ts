/** URLs with the character NUL or a repeated query parameter get 400 on both databases, not a server error. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Browser } from '../../support/console-client.js';
import { describeDatabases, startHarnessOn } from '../../support/databases.js';
import { errorOf, type Harness, NO_RATE_LIMITS } from '../../support/harness.js';

describeDatabases('malformed paths', (fresh) => {
  let harness: Harness;
  let person: Browser;

  beforeAll(async () => {
    harness = await startHarnessOn(fresh, { config: { rateLimits: NO_RATE_LIMITS } });
    person = new Browser(harness.url);
    await person.signUp('person@example.com');
  });
  afterAll(() => harness.close());

  const ask = (method: string, path: string, body?: object): Promise<Response> => {
    if (path.startsWith('/console/')) return person.send(method, path, body);
    const key = path.startsWith('/admin/') ? harness.adminKey : harness.apiKey;
    return fetch(harness.url + path, {
      method,
      headers: { authorization: `Bearer ${key}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  };

  it.each<[string, string, object?]>([
    ['GET', '/v1/payments/usage?model=%00'],
    ['GET', '/v1/receipts/%00'],
    ['GET', '/v1/models/a%00b'],
    ['GET', '/v1/providers/attestation?provider_id=%00'],
    ['PATCH', '/console/v1/keys/%00', { name: 'x' }],
    ['DELETE', '/console/v1/keys/%00'],
    ['DELETE', '/console/v1/machines/%00'],
    ['GET', '/console/v1/usage?model=%00'],
    ['GET', '/admin/v1/accounts/%00'],
    ['GET', '/admin/v1/accounts?search=%00'],
    ['PATCH', '/admin/v1/accounts/%00', { suspended: false }],
    ['POST', '/admin/v1/accounts/%00/deposits', { amount_micro_usd: 10_000, reference: 'x' }],
    ['POST', '/admin/v1/withdrawals/%00/end', { end: 'paid' }],
    ['GET', '/admin/v1/deposits?account_id=%00'],
    ['GET', '/admin/v1/withdrawals?account_id=%00'],
    ['GET', '/admin/v1/actions?subject=%00'],
  ])('with the character NUL: %s %s', async (method, path, body) => {
    const answer = await ask(method, path, body);
    expect([answer.status, (await errorOf(answer)).message]).toEqual([400, expect.stringContaining('NUL')]);
  });

  it.each([
    ['search', '/admin/v1/accounts'],
    ['account_id', '/admin/v1/deposits'],
    ['account_id', '/admin/v1/withdrawals'],
    ['state', '/admin/v1/withdrawals'],
    ['subject', '/admin/v1/actions'],
    ['model', '/v1/payments/usage'],
    ['model', '/console/v1/usage'],
    ['limit', '/console/v1/keys'],
  ])('with the parameter %s twice: %s', async (name, path) => {
    const answer = await ask('GET', `${path}?${name}=a&${name}=b`);
    expect([answer.status, (await errorOf(answer)).param]).toEqual([400, name]);
  });
});
