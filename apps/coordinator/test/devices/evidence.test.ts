/** Device evidence end to end: a provider enrols its Mac, the Mac is queried, and its answers are stored and verified. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { deviceNonce } from '../../src/providers/verification/chain/freshness.js';
import { until } from '../support/harness.js';
import { type ManagedNetwork, startManagedNetwork } from './managed-network.js';

const DAY = 86_400_000;

describe('evidence of a managed Mac', () => {
  let network: ManagedNetwork;
  beforeAll(async () => {
    network = await startManagedNetwork();
  });
  afterAll(() => network.close());

  it('arrives after the profile is installed, and is bound to the enclave key', async () => {
    const { provider, mac } = await network.enrolled();
    await until(() => network.device(provider).certifiedAt !== null && network.device(provider).evidence.security !== null);
    const { evidence } = network.device(provider);
    expect(evidence).toMatchObject({
      enrolledAt: expect.any(Number),
      security: { sipEnabled: true, secureBootLevel: 'full', diskEncryptionEnabled: true, authenticatedRootEnabled: true },
      information: {
        serialNumber: mac.identity.serialNumber,
        provisioningUdid: mac.identity.provisioningUdid,
        softwareUpdateDeviceId: mac.identity.softwareUpdateDeviceId,
      },
      acme: { certificates: [expect.any(String), expect.any(String)] },
    });
    const { chain } = evidence;
    expect(chain?.certificates).toHaveLength(2);
    expect(Buffer.from(chain?.preimage.se_public_key ?? '', 'base64')).toEqual(Buffer.from(provider.enclave.publicKey));
    expect(chain && deviceNonce(chain.preimage)).toHaveLength(32);
  });

  it('survives a restart of the provider, and is dropped when the profile is removed', async () => {
    const { provider, mac } = await network.enrolled();
    await until(() => network.device(provider).certifiedAt !== null);
    provider.close();
    const again = await network.harness.provider({ enclave: provider.enclave, serial: mac.identity.serialNumber });
    await until(() => network.device(again).certifiedAt !== null);
    await network.management.unenrol(mac.identity.udid);
    await until(() => network.device(again).evidence.enrolledAt === null);
    expect(network.device(again).evidence).toMatchObject({ security: null, information: null, chain: null, acme: null });
  });

  it('moves to another key of the Mac at its enrolment, and leaves the first key without evidence', async () => {
    const { provider, mac } = await network.enrolled();
    await until(() => network.device(provider).certifiedAt !== null);
    const second = await network.harness.provider({ serial: mac.identity.serialNumber });
    await network.management.enrol(mac.identity.udid, await (await fetch(await network.profileUrl(second))).text());
    await until(() => network.device(second).evidence.security !== null);
    expect(network.device(provider).evidence).toMatchObject({ enrolledAt: null, chain: null });
    // The Mac returns its cached certificate, which is bound to the first key and proves nothing for this one.
    await until(() => network.device(second).commands.some((command) => command.outcome === 'stale_attestation'));
    expect(network.device(second).certifiedAt).toBeNull();
  });

  it('shows a disabled protection at the next report', async () => {
    const hourly = await startManagedNetwork({ rules: { securityIntervalMs: 50 } });
    try {
      const { provider, mac } = await hourly.enrolled();
      await until(() => hourly.device(provider).evidence.security?.sipEnabled === true);
      mac.protections = { ...mac.protections, sipEnabled: false };
      await until(() => hourly.device(provider).evidence.security?.sipEnabled === false);
    } finally {
      await hourly.close();
    }
  });

  it('is renewed after a week, and stays valid until then', async () => {
    const weekly = await startManagedNetwork();
    try {
      const { provider } = await weekly.enrolled();
      await until(() => weekly.device(provider).certifiedAt !== null);
      const first = weekly.device(provider).certifiedAt ?? 0;
      weekly.clock.advance(7.5 * DAY);
      await until(() => (weekly.device(provider).certifiedAt ?? 0) >= first + 7 * DAY);
    } finally {
      await weekly.close();
    }
  });

  it('is queried again after an old attestation, which never counts as bound', async () => {
    const { provider, mac } = await network.enrolled({ mac: { misbehaviours: ['stale_nonce'] } });
    await until(() => network.device(provider).commands.some((command) => command.outcome === 'stale_attestation'));
    expect(network.device(provider).certifiedAt).toBeNull();
    mac.misbehaviours = new Set();
    network.clock.advance(7.5 * DAY);
    await until(() => network.device(provider).certifiedAt !== null);
  });

  it("is absent without the setting: chains of a simulated authority do not end at Apple's anchor", async () => {
    const real = await startManagedNetwork({ realAnchor: true });
    try {
      const { provider } = await real.enrolled();
      await until(() =>
        real.device(provider).commands.some((command) => command.kind === 'device_information' && command.outcome === 'refused'),
      );
      expect(real.device(provider)).toMatchObject({ certifiedAt: null, evidence: { acme: null } });
      expect(real.acme.lastAnswer?.body).toContain('anchor_name');
      await until(() => real.management.sent.some((sent) => sent.answer.includes('anchor_name')));
    } finally {
      await real.close();
    }
  });
});
