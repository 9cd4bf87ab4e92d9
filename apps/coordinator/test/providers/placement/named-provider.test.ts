/** Requests that name one provider: by serial number, which anyone can claim, or by id, which is unique. */

import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { type PlacementRequest, type ProviderFacts, schedule } from '../../../../../packages/scheduler/src/index.js';
import { anyone, chance, id, NOW, poolOf, provider } from '../../../../../packages/scheduler/test/providers.js';
import { errorOf, type Harness, MODEL, until } from '../../support/harness.js';
import { BODIES } from '../../support/inference-calls.js';
import { SharedHarness } from '../../support/shared-harness.js';

const shared = new SharedHarness();
afterAll(() => shared.close());

let harness: Harness;
afterEach(() => harness?.close());

const SERIAL = 'C02COPIED01';
const named = { provider_serial: SERIAL };
const idHeader = (providerId: string) => ({ 'x-inference-provider-id': providerId });

describe('provider_serial', () => {
  it('that several providers claim and none proves is refused, and names the field', async () => {
    harness = await shared.take();
    const owner = await harness.provider({ serial: SERIAL });
    expect((await harness.chat(named)).headers.get('x-provider-id')).toBe(owner.providerId);
    // The impostor serves another model, but the serial number is still ambiguous.
    const impostor = await harness.provider({ serial: SERIAL, models: ['other/model'] });
    for (const model of [MODEL, 'other/model']) {
      const refused = await harness.chat({ ...named, model });
      const error = await errorOf(refused);
      expect([refused.status, error.param, refused.headers.get('x-should-retry')]).toEqual([400, 'provider_serial', 'false']);
      expect(error.message).toContain('X-Inference-Provider-Id');
    }
    expect([owner.jobs.size, impostor.jobs.size]).toEqual([1, 0]);
    impostor.close();
    await until(() => harness.app.providers.snapshot(impostor.providerId) === null);
    expect((await harness.chat(named)).status).toBe(200);
  });

  it('that one provider proves means that provider, despite other claimants', () => {
    const request: PlacementRequest = { ...anyone, providerSerial: 'S' };
    const facts = (trustLevel: ProviderFacts['trustLevel']) => ({ serialNumber: 'S', trustLevel, keyNotAfter: NOW + 1 });
    const chosen = (levels: Readonly<Record<string, ProviderFacts['trustLevel']>>) => {
      const providers = Object.entries(levels).map(([name, level]) => provider(name, facts(level)));
      const decision = schedule(poolOf(providers), request, NOW, chance(1));
      return decision.kind === 'placed' ? decision.ordered.map(({ member }) => member.subject) : decision;
    };
    expect(chosen({ copy: 'self_signed', real: 'hardware', other: 'self_signed' })).toEqual(['real']);
    expect(chosen({ alone: 'self_signed' })).toEqual(['alone']);
    expect(chosen({ copy: 'self_signed', other: 'self_signed' })).toMatchObject({ kind: 'none', reason: 'no_such_serial' });
  });
});

describe('X-Inference-Provider-Id', () => {
  it('reaches that provider alone, on every endpoint', async () => {
    harness = await shared.take();
    const providers = [await harness.provider({ serial: SERIAL }), await harness.provider({ serial: SERIAL })];
    for (const { providerId } of providers) {
      for (const [path, body] of Object.entries(BODIES)) {
        const answer = await harness.post(path, body, idHeader(providerId));
        expect([path, answer.status, answer.headers.get('x-provider-id')]).toEqual([path, 200, providerId]);
      }
      const { max_tokens, ...counted } = BODIES['/v1/messages'];
      expect((await harness.post('/v1/messages/count_tokens', counted, idHeader(providerId))).status).toBe(200);
      // If both are given, the id decides between the two claimants of the serial number.
      expect((await harness.chat(named, { headers: idHeader(providerId) })).headers.get('x-provider-id')).toBe(providerId);
      expect((await harness.chat({ provider_serial: 'C02OTHER' }, { headers: idHeader(providerId) })).status).toBe(503);
    }
  });

  it('of no connected provider is 503 that names the header, and a bad one is 400', async () => {
    harness = await shared.take();
    const provider = await harness.provider();
    const missing = await harness.chat({}, { headers: idHeader('0'.repeat(32)) });
    const error = await errorOf(missing);
    expect([missing.status, error.code, error.param]).toEqual([503, 'provider_not_available', 'X-Inference-Provider-Id']);
    expect(error.message).not.toContain('serial');
    for (const bad of ['', 'x', provider.providerId.toUpperCase().padEnd(33, '0')]) {
      const refused = await harness.chat({}, { headers: idHeader(bad) });
      expect([refused.status, (await errorOf(refused)).param]).toEqual([400, 'X-Inference-Provider-Id']);
    }
    expect(provider.begunCount).toBe(0);
  });

  it('waits for that provider while others are free, and is not tried elsewhere', async () => {
    harness = await shared.take();
    let release: () => void = () => {};
    const busy = await harness.provider({
      slots: 1,
      onJob: async (job) => {
        if (busy.jobs.size === 1) await new Promise<void>((resolve) => (release = resolve));
        job.answerHonestly();
      },
    });
    const first = harness.chat({}, { headers: idHeader(busy.providerId) });
    await until(() => busy.jobs.size === 1);
    const free = await harness.provider();
    const second = harness.chat({}, { headers: idHeader(busy.providerId) });
    expect((await harness.chat()).headers.get('x-provider-id')).toBe(free.providerId);
    release();
    for (const answer of await Promise.all([first, second])) expect(answer.headers.get('x-provider-id')).toBe(busy.providerId);
  });
});

it('a named provider that is restricted is the only candidate', () => {
  const pool = poolOf([provider('named', { isQuarantined: true }), provider('other')]);
  const decision = schedule(pool, { ...anyone, providerId: id('named') }, NOW, chance(1));
  expect(decision).toMatchObject({ kind: 'none' });
});
