/**
 * How a provider gains and loses trust level `hardware`, with a real coordinator. Mac, management server and Apple's authority are
 * simulated.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { errorOf, until } from '../support/harness.js';
import type { ScriptedProvider } from '../support/scripted-provider.js';
import { type ManagedNetwork, startManagedNetwork } from './managed-network.js';

describe('the trust level of a managed Mac', () => {
  let network: ManagedNetwork;
  beforeAll(async () => {
    network = await startManagedNetwork();
  });
  afterAll(() => network.close());

  function snapshotOf(provider: ScriptedProvider, of = network) {
    return of.harness.app.providers.snapshot(provider.providerId) ?? expect.fail();
  }
  const levelOf = (provider: ScriptedProvider, of = network) => snapshotOf(provider, of).trust.level;
  /** Reasons of the trust parts that are not ok. */
  const gapsOf = (provider: ScriptedProvider, of = network): (string | null)[] =>
    snapshotOf(provider, of)
      .trust.parts.filter(({ state }) => state !== 'ok')
      .map(({ reason }) => reason);

  /** Makes the coordinator query the Mac's protections again. */
  const askAgain = (provider: ScriptedProvider): void =>
    network.harness.app.devices.evidence.markStale(snapshotOf(provider).registration.identity.publicKeySha256);

  it('rises to hardware with complete evidence, and the provider is notified', async () => {
    const { provider } = await network.enrolled();
    await until(() => levelOf(provider) === 'hardware');
    expect(gapsOf(provider)).toEqual([]);
    await until(() => provider.received.some((message) => message.type === 'trust' && message.trust_level === 'hardware'));
    // Next to a provider that is not enrolled, only this one serves requests that require hardware.
    await network.harness.provider({ serial: 'NOTENROLLED' });
    for (let count = 0; count < 4; count++) {
      const answer = await network.harness.chat({}, { headers: { 'x-inference-trust': 'hardware' } });
      expect([answer.status, answer.headers.get('x-provider-id')]).toEqual([200, provider.providerId]);
      expect(answer.headers.get('x-provider-trust-level')).toBe('hardware');
    }
  });

  it('falls when device management reports a disabled protection, and rises when the protection is enabled again', async () => {
    const { provider, mac } = await network.enrolled();
    await until(() => levelOf(provider) === 'hardware');
    const sound = mac.protections;
    for (const [change, reason] of [
      [{ sipEnabled: false }, 'managed_sip_disabled'],
      [{ secureBootLevel: 'medium' }, 'managed_secure_boot_not_full'],
      [{ diskEncrypted: false }, 'managed_disk_encryption_off'],
      [{ authenticatedRoot: false }, 'managed_root_volume_unsealed'],
    ] as const) {
      mac.protections = { ...sound, ...change };
      askAgain(provider);
      await until(() => levelOf(provider) === 'self_signed');
      expect(gapsOf(provider)).toEqual([reason]);
      mac.protections = sound;
      askAgain(provider);
      await until(() => levelOf(provider) === 'hardware');
    }
  });

  it('falls when the profile is removed', async () => {
    const { provider, mac } = await network.enrolled();
    await until(() => levelOf(provider) === 'hardware');
    await network.management.unenrol(mac.identity.udid);
    await until(() => levelOf(provider) === 'self_signed');
    expect(gapsOf(provider)).toContain('not_enrolled');
  });

  it('stays low for a Mac whose certificate states a disabled protection', async () => {
    const { provider } = await network.enrolled({ mac: { protections: { thirdPartyKextsAllowed: true } } });
    await until(() => gapsOf(provider).includes('chain_refused'));
    expect(levelOf(provider)).toBe('self_signed');
  });

  it('stays low for a provider that claims the serial number of another Mac', async () => {
    const victim = await network.enrolled();
    await until(() => levelOf(victim.provider) === 'hardware');
    const { provider } = await network.enrolled({ serial: victim.mac.identity.serialNumber });
    await until(() => network.device(provider).evidence.chain !== null && network.device(provider).evidence.security !== null);
    expect(gapsOf(provider)).toContain('serial_number_differs');
    expect(levelOf(provider)).toBe('self_signed');
    expect(levelOf(victim.provider)).toBe('hardware');
  });

  it('stays low while a Mac sends attestations of another nonce', async () => {
    const { provider } = await network.enrolled({ mac: { misbehaviours: ['stale_nonce'] } });
    await until(() => gapsOf(provider).includes('binding_of_another_nonce'));
    expect(levelOf(provider)).toBe('self_signed');
  });

  it("stays low outside a simulation: no simulated chain ends at Apple's anchor", async () => {
    const real = await startManagedNetwork({ realAnchor: true });
    try {
      const { provider } = await real.enrolled();
      await until(() => gapsOf(provider, real).includes('chain_refused') && real.device(provider).evidence.security !== null);
      expect(levelOf(provider, real)).toBe('self_signed');
    } finally {
      await real.close();
    }
    const strict = await startManagedNetwork({ realAnchor: true, config: { allowSimulatedEnclave: false } });
    try {
      await expect(strict.enrolled()).rejects.toThrow('simulated_enclave_refused');
    } finally {
      await strict.close();
    }
  });

  it('serves a profile once, at an address sent only to the provider', async () => {
    const provider = await network.harness.provider();
    const url = await network.profileUrl(provider);
    expect(url.startsWith(`${network.harness.url}/mdm/v1/enrolment/`)).toBe(true);
    expect((await fetch(url, { method: 'HEAD' })).status).toBe(405);
    const first = await fetch(url);
    expect([first.status, first.headers.get('content-type'), first.headers.get('cache-control')]).toEqual([
      200,
      'application/x-apple-aspen-config',
      'no-store',
    ]);
    const second = await fetch(url);
    expect([second.status, (await errorOf(second)).code]).toEqual([404, 'not_found']);
    // An immediate second request must wait, and no token is logged.
    provider.send({ type: 'enrolment_request' });
    expect(await provider.next('enrolment_refused')).toMatchObject({ reason: 'try_later' });
    expect(network.harness.log.join()).not.toContain(url.slice(-43));
  });

  it('gets no profile from a coordinator without device management', async () => {
    const none = await startManagedNetwork({ unmanaged: true });
    try {
      const provider = await none.harness.provider();
      provider.send({ type: 'enrolment_request' });
      expect(await provider.next('enrolment_refused')).toMatchObject({ reason: 'not_offered' });
      expect((await none.post('/mdm/v1/webhook', '{}')).status).toBe(404);
    } finally {
      await none.close();
    }
  });
});
