/** A coordinator with device management. Macs, certificate authority, management server and ACME server are simulated, with one clock. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  AcmeServer,
  type FakeMac,
  type MacIdentity,
  type ManagementServer,
  ManagementServer as Server,
  SimulatedAuthority,
} from '@inference/device-simulation';
import { sha256Hex } from '@inference/protocol/crypto';
import type { Config } from '../../src/config/config.js';
import type { ScheduleRules } from '../../src/devices/command-policy.js';
import type { WatchedDevice } from '../../src/devices/device-evidence-cache.js';
import { readDeviceManagement } from '../../src/devices/settings.js';
import { type Harness, startHarness, until } from '../support/harness.js';
import type { ProviderOptions, ScriptedProvider } from '../support/scripted-provider.js';

export const WEBHOOK_SECRET = 'a webhook secret of some length';
export const API_KEY = 'management key';

export interface ManagedNetwork {
  readonly harness: Harness;
  readonly management: ManagementServer;
  readonly acme: AcmeServer;
  readonly authority: SimulatedAuthority;
  readonly clock: { readonly now: number; advance(ms: number): void };
  /** A provider, and a Mac with its serial number that has installed the provider's profile. */
  enrolled(
    options?: ProviderOptions & { readonly mac?: Parameters<ManagementServer['addMac']>[1]; readonly identity?: Partial<MacIdentity> },
  ): Promise<{ readonly provider: ScriptedProvider; readonly mac: FakeMac; readonly profile: string }>;
  /** One-time URL of a provider's profile. */
  profileUrl(provider: ScriptedProvider): Promise<string>;
  device(provider: ScriptedProvider): WatchedDevice;
  /** Posts raw bytes to the webhook. */
  post(path: string, body: string | Buffer, headers?: Record<string, string>): Promise<{ readonly status: number; readonly text: string }>;
  close(): Promise<void>;
}

export function testAuthority(now: number): SimulatedAuthority {
  return SimulatedAuthority.create({ now: now - 86_400_000, random: (bytes) => new Uint8Array(randomBytes(bytes)) });
}

export async function startManagedNetwork(
  options: {
    readonly rules?: Partial<ScheduleRules>;
    readonly renewMs?: number;
    readonly config?: Partial<Config>;
    /** Whether the coordinator accepts only Apple's trust anchor. */
    readonly realAnchor?: boolean;
    /** Whether no management server is configured. */
    readonly unmanaged?: boolean;
  } = {},
): Promise<ManagedNetwork> {
  let offset = 0;
  const clock = {
    get now(): number {
      return Date.now() + offset;
    },
    advance(ms: number): void {
      offset += ms;
    },
  };
  const now = (): number => clock.now;
  const authority = testAuthority(now());
  const webhook = { url: 'http://127.0.0.1:1', secret: WEBHOOK_SECRET };
  const renew = options.renewMs === undefined ? {} : { renewMs: options.renewMs };
  const management = await Server.start({ authority, apiKey: API_KEY, webhook, now, ...renew });
  const acme = await AcmeServer.start({ hook: webhook, now });
  const settings = readDeviceManagement({
    MDM_URL: management.url,
    MDM_API_KEY: API_KEY,
    MDM_WEBHOOK_SECRET: WEBHOOK_SECRET,
    MDM_TOPIC: 'com.apple.mgmt.External.test',
    MDM_ACME_DIRECTORY_URL: acme.directoryUrl,
  });
  if (settings === null) throw new Error('the settings are incomplete');
  const directory = mkdtempSync(join(tmpdir(), 'managed-network-'));
  const rootFile = join(directory, 'root.pem');
  writeFileSync(rootFile, authority.rootPem);
  const anchor = { simulatedDeviceAuthority: options.realAnchor ? null : rootFile };
  const harness = await startHarness({
    now,
    deviceIntervalMs: 20,
    // Tests skip a week at once, which sessions would otherwise treat as silence.
    providerTimings: { silenceMs: 365 * 86_400_000 },
    config: { ...options.config, ...anchor, deviceManagement: options.unmanaged ? null : settings },
    deviceRules: { minPauseMs: 0, ...options.rules },
  });
  management.webhook = { url: `${harness.url}/mdm/v1/webhook`, secret: WEBHOOK_SECRET };
  acme.hook = { url: `${harness.url}/mdm/v1/acme`, secret: WEBHOOK_SECRET };

  const profileUrl = async (provider: ScriptedProvider): Promise<string> => {
    provider.send({ type: 'enrolment_request' });
    return (await provider.next('enrolment')).url;
  };
  const device = (provider: ScriptedProvider): WatchedDevice => {
    const key = sha256Hex(provider.enclave.publicKey);
    for (const watched of harness.app.devices.evidence.watched()) if (watched.seKeySha256 === key) return watched;
    throw new Error('this key is not watched');
  };
  return {
    ...{ harness, management, acme, authority, clock, profileUrl, device },
    async enrolled({ mac: more, identity, ...providerOptions } = {}) {
      const mac = management.addMac(identity, more);
      const provider = await harness.provider({ serial: mac.identity.serialNumber, ...providerOptions });
      const profile = await (await fetch(await profileUrl(provider))).text();
      await management.enrol(mac.identity.udid, profile);
      await until(() => device(provider).enrolment?.state === 'active');
      return { provider, mac, profile };
    },
    async post(path, body, headers = {}) {
      const response = await fetch(harness.url + path, { method: 'POST', body, headers });
      return { status: response.status, text: await response.text() };
    },
    async close() {
      await management.close();
      await acme.close();
      await harness.close();
      rmSync(directory, { recursive: true });
    },
  };
}
