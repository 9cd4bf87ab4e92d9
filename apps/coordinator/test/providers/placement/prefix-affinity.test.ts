/** Conversations stay on their provider, through the public interfaces of a running coordinator. */
import { createHmac } from 'node:crypto';
import { afterEach, describe, expect, it } from 'vitest';
import { sharedSecret } from '../../../src/database/secret-repository.js';
import { CACHE_SCOPE_SECRET } from '../../../src/inference/request/cache-scopes.js';
import { type Customer, type Harness, startHarness } from '../../support/harness.js';
import type { ScriptedProvider } from '../../support/scripted-provider.js';

let harness: Harness;
afterEach(() => harness.close());

const CANARY = 'canary-of-a-prompt';
const opening = { role: 'user', content: `${CANARY} ${'word '.repeat(2000)}` };
const goesOn = [opening, { role: 'assistant', content: 'Yes.' }, { role: 'user', content: 'Go on.' }];

const serialFor = async (messages: readonly unknown[], customer: Customer): Promise<string | null> => {
  const headers = { authorization: `Bearer ${customer.apiKey}` };
  const response = await harness.chat({ messages }, { headers });
  expect(response.status).toBe(200);
  return response.headers.get('x-provider-serial');
};

const scopesOf = ({ jobs }: ScriptedProvider): (string | undefined)[] => [...jobs.values()].map(({ context }) => context.cache_scope);

describe('the next turn of a conversation', () => {
  it('goes to the provider of the previous turn; another account with the same prompt gains nothing', async () => {
    let drawn = 0.99;
    harness = await startHarness({ random: () => drawn });
    await harness.provider({ serial: 'ONE' });
    await harness.provider({ serial: 'TWO' });
    const other = await harness.customer(1_000_000);
    const had = await serialFor([opening], harness.developer);
    drawn = 0.2;
    expect(await serialFor(goesOn, other)).not.toBe(had);
    expect(await serialFor(goesOn, harness.developer)).toBe(had);
    expect(await serialFor([{ role: 'user', content: 'Something else.' }], harness.developer)).not.toBe(had);
    expect(harness.log.join('\n')).not.toContain(CANARY);
  });
});

describe('the cache scope', () => {
  it('is unique per account and provider, and reveals neither', async () => {
    harness = await startHarness();
    const [one, two] = [await harness.provider({ serial: 'ONE' }), await harness.provider({ serial: 'TWO' })];
    const other = await harness.customer(1_000_000);
    const ask = (serial: string, { apiKey }: Customer) =>
      harness.chat({ provider_serial: serial }, { headers: { authorization: `Bearer ${apiKey}` } });
    for (const customer of [harness.developer, harness.developer, other]) {
      for (const serial of ['ONE', 'TWO']) expect((await ask(serial, customer)).status).toBe(200);
    }
    const [ofOne, ofTwo] = [scopesOf(one), scopesOf(two)];
    for (const scopes of [ofOne, ofTwo]) {
      expect(scopes).toHaveLength(3);
      for (const scope of scopes) expect(scope).toMatch(/^[0-9a-f]{32}$/);
      expect(scopes[0]).toBe(scopes[1]);
      expect(scopes[0]).not.toBe(scopes[2]);
    }
    expect(new Set([...ofOne, ...ofTwo]).size).toBe(4);
    // Another coordinator of the same database computes the same scopes.
    const secret = await sharedSecret(harness.app.database, CACHE_SCOPE_SECRET);
    const key = createHmac('sha256', secret).update(other.accountId).digest();
    expect(ofTwo[2]).toBe(createHmac('sha256', key).update(two.providerId).digest('hex').slice(0, 32));
  });
});
