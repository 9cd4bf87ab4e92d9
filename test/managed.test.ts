/** A whole network with simulated device management, as `npm start` runs it: real processes, simulated Macs. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DemoNetwork, startDemoNetwork } from './support/demo-network.js';
import { temporaryDirectory } from './support/temporary-directory.js';

describe('a network whose Macs are managed', () => {
  const dataDir = temporaryDirectory('inference-managed');
  let network: DemoNetwork;
  const start = async (): Promise<void> => {
    const coordinatorEnv = { MDM_SECURITY_INTERVAL_SECONDS: '1' };
    ({ network } = await startDemoNetwork({ dataDir, hasSimulatedManagement: true, coordinatorEnv }));
  };
  beforeAll(start);
  afterAll(() => network.stop());

  interface Attestation {
    readonly trust_level: string;
    readonly provider_id: string;
    readonly serial_number: string;
    readonly secure_enclave: boolean;
  }

  async function attestation(): Promise<Attestation> {
    const feed = (await (await fetch(`${network.baseUrl}/v1/providers/attestation`)).json()) as { providers: Attestation[] };
    return feed.providers[0] ?? expect.fail('no provider');
  }

  const reaches = (level: string) => expect.poll(async () => (await attestation()).trust_level).toBe(level);

  /** Calls the controls of the simulated management server. */
  async function control(path: string, method: string, body?: object): Promise<unknown> {
    const key = readFileSync(join(dataDir, 'device-simulation', 'api-key'), 'utf8');
    const response = await fetch(`${network.managementUrl}/simulation/v1${path}`, {
      method,
      headers: { authorization: `Basic ${Buffer.from(`nanomdm:${key}`).toString('base64')}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    expect(response.status).toBe(200);
    return response.json();
  }

  it('reaches hardware by itself, falls when a protection is turned off, and comes back', async () => {
    await reaches('hardware');
    const { serial_number, secure_enclave } = await attestation();
    expect(secure_enclave).toBe(false);
    const { macs } = (await control('/macs', 'GET')) as { macs: { identity: { udid: string; serialNumber: string } }[] };
    expect(macs.map((mac) => mac.identity.serialNumber)).toEqual([serial_number]);
    const mac = `/macs/${macs[0]?.identity.udid}`;
    await control(mac, 'PATCH', { protections: { sipEnabled: false } });
    await reaches('self_signed');
    await control(mac, 'PATCH', { protections: { sipEnabled: true } });
    await reaches('hardware');
  });

  it('is still what it was after all of it was started again', async () => {
    const before = await attestation();
    await network.stop();
    await start();
    await reaches('hardware');
    expect(await attestation()).toMatchObject({ provider_id: before.provider_id, serial_number: before.serial_number });
    // The Mac was not enrolled again: same Mac, same profile.
    expect(((await control('/macs', 'GET')) as { macs: unknown[] }).macs).toHaveLength(1);
    const log = readFileSync(join(dataDir, 'logs', 'provider-1.log'), 'utf8');
    expect(log.match(/enrolment_installed/g)).toHaveLength(1);
  });
});
