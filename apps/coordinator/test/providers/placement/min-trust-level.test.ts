/** `MIN_TRUST_LEVEL`: providers without proven hardware get no jobs unless the operator allows it. */
import { afterEach, describe, expect, it } from 'vitest';
import { readConfig } from '../../../src/config/config.js';
import { type Harness, MODEL, startHarness, until } from '../../support/harness.js';

describe('the default of MIN_TRUST_LEVEL', () => {
  it.each([
    [{}, 'hardware'],
    [{ ALLOW_SIMULATED_ENCLAVE: '1' }, 'self_signed'],
    [{ DEVELOPMENT: '1' }, 'self_signed'],
    [{ MIN_TRUST_LEVEL: 'self_signed' }, 'self_signed'],
    [{ MIN_TRUST_LEVEL: 'hardware', ALLOW_SIMULATED_ENCLAVE: '1', DEVELOPMENT: '1' }, 'hardware'],
  ] as const)('with %j is %s', (env, level) => {
    expect(readConfig(env).minTrustLevel).toBe(level);
  });

  it('is checked', () => {
    expect(() => readConfig({ MIN_TRUST_LEVEL: 'some' })).toThrow('MIN_TRUST_LEVEL must be one of self_signed, hardware, not "some".');
  });
});

describe('a software key that claims to be kept in a Secure Enclave', () => {
  let harness: Harness;
  afterEach(() => harness.close());

  const models = async (): Promise<string[]> =>
    ((await (await harness.get('/v1/models')).json()) as { data: { id: string }[] }).data.map(({ id }) => id);

  it('stays connected below the minimum level, gets no prompt, and sees why', async () => {
    harness = await startHarness({ config: { allowSimulatedEnclave: false, minTrustLevel: readConfig({}).minTrustLevel } });
    const provider = await harness.provider({ claimsEnclave: true });
    const feed = (await (await harness.get('/v1/providers/attestation', null)).json()) as { providers: object[] };
    expect(feed.providers).toMatchObject([
      { trust_level: 'self_signed', status: 'below_min_trust_level', secure_enclave: true, enclave_evidence: 'claimed', simulated: false },
    ]);
    expect(await models()).not.toContain(MODEL);
    expect([404, 503]).toContain((await harness.chat()).status);
    expect(provider.begunCount).toBe(0);
    await until(() => provider.standing?.status === 'below_min_trust_level');
    expect(provider.standing).toMatchObject({
      routable: false,
      trust_level: 'self_signed',
      status_remedy: expect.stringMatching(/only to machines of trust level hardware.+"inference-provider setup --enrol"/),
    });
  });

  it('gets prompts where the operator allows self_signed', async () => {
    harness = await startHarness({ config: { allowSimulatedEnclave: false, minTrustLevel: 'self_signed' } });
    await harness.provider({ claimsEnclave: true });
    expect((await harness.chat()).status).toBe(200);
    expect(await models()).toContain(MODEL);
  });
});
