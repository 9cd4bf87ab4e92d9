import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readEnrolmentProfile } from '@inference/device-simulation';
import { describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { ACCESS_RIGHTS, enrolmentProfile, type ProfileSettings } from '../../src/devices/enrolment-profile.js';
import { type PlistDict, parsePlist } from '../../src/devices/plist/plist.js';
import { profileSigner } from '../../src/devices/profile-signer.js';
import { readDeviceManagement } from '../../src/devices/settings.js';

const SETTINGS: ProfileSettings = {
  serverUrl: 'https://mdm.example/mdm',
  checkInUrl: 'https://mdm.example/checkin?tenant=1',
  topic: 'com.apple.mgmt.External.1',
  identity: { kind: 'acme', directoryUrl: 'https://acme.example/{enrolment}/directory' },
  organization: 'Müller & Söhne <Network>',
};
const SUBJECT = {
  token: 'TOKEN',
  parameter: 'enrolment',
  providerId: 'p1',
  serialNumber: 'SERIAL0001',
  uuids: ['U1', 'U2', 'U3'] as const,
};

function payloadsOf(profile: string): readonly PlistDict[] {
  const parsed = parsePlist(Buffer.from(profile));
  const root = parsed.ok && parsed.value instanceof Map ? (parsed.value as PlistDict) : expect.fail();
  expect(root.get('PayloadType')).toBe('Configuration');
  return root.get('PayloadContent') as readonly PlistDict[];
}

describe('the enrolment profile', () => {
  it('orders an attested hardware key, and management rights for queries only', () => {
    const [identity, management] = payloadsOf(enrolmentProfile(SETTINGS, SUBJECT));
    expect(Object.fromEntries(identity ?? [])).toMatchObject({
      PayloadType: 'com.apple.security.acme',
      PayloadUUID: 'U2',
      DirectoryURL: 'https://acme.example/TOKEN/directory',
      ClientIdentifier: 'SERIAL0001',
      KeyType: 'ECSECPrimeRandom',
      KeySize: 384,
      HardwareBound: true,
      Attest: true,
    });
    expect(Object.fromEntries(management ?? [])).toMatchObject({
      PayloadType: 'com.apple.mdm',
      IdentityCertificateUUID: 'U2',
      ServerURL: 'https://mdm.example/mdm?enrolment=TOKEN',
      CheckInURL: 'https://mdm.example/checkin?tenant=1&enrolment=TOKEN',
      Topic: 'com.apple.mgmt.External.1',
      AccessRights: 1040,
      CheckOutWhenRemoved: true,
    });
    // Only queries of device and security information. No lock (4), erase (8), profiles (1, 2), apps (256, 4096) or settings (2048).
    expect(ACCESS_RIGHTS & (1 | 2 | 4 | 8 | 256 | 2048 | 4096)).toBe(0);
    expect(readEnrolmentProfile(enrolmentProfile(SETTINGS, SUBJECT)).parameters).toEqual({ tenant: '1', enrolment: 'TOKEN' });
  });

  it('orders a SCEP identity without an ACME directory', () => {
    const scep = { ...SETTINGS, identity: { kind: 'scep', url: 'https://scep.example', challenge: 'c' } } as const;
    const [identity] = payloadsOf(enrolmentProfile(scep, SUBJECT));
    expect(identity?.get('PayloadType')).toBe('com.apple.security.scep');
    expect(Object.fromEntries(identity?.get('PayloadContent') as PlistDict)).toMatchObject({ URL: 'https://scep.example', Challenge: 'c' });
  });
});

describe('the signature of a profile', () => {
  const directory = temporaryDirectory('profile');

  const openssl = (...args: readonly string[]): void => void execFileSync('openssl', args, { cwd: directory, stdio: 'pipe' });
  const pem = (file: string): string => readFileSync(join(directory, file), 'utf8');

  function certificate(name: string, key: readonly string[]): void {
    openssl(
      'req',
      '-x509',
      '-newkey',
      ...key,
      '-nodes',
      '-keyout',
      `${name}.key`,
      '-out',
      `${name}.pem`,
      '-subj',
      `/CN=${name}`,
      '-days',
      '2',
    );
  }

  it.each([
    ['rsa', ['rsa:2048']],
    ['ec', ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256']],
  ])('verifies with openssl (%s)', (name, key) => {
    certificate(name, key);
    const profile = Buffer.from(enrolmentProfile(SETTINGS, SUBJECT));
    const signed = profileSigner(pem(`${name}.pem`), pem(`${name}.key`), Date.now)(profile);
    writeFileSync(join(directory, 'signed'), signed);
    const verify = [
      'cms',
      '-verify',
      '-inform',
      'DER',
      '-in',
      'signed',
      '-binary',
      '-CAfile',
      `${name}.pem`,
      '-purpose',
      'any',
      '-out',
      'out',
    ];
    openssl(...verify);
    expect(readFileSync(join(directory, 'out'))).toEqual(profile);
    const at = Buffer.from(signed).indexOf('SERIAL0001');
    signed[at] = (signed[at] as number) ^ 1;
    writeFileSync(join(directory, 'signed'), signed);
    expect(() => openssl(...verify)).toThrow();
  });

  it('is rejected for a certificate and key that do not match', () => {
    certificate('one', ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256']);
    certificate('two', ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256']);
    expect(() => profileSigner(pem('one.pem'), pem('two.key'), Date.now)).toThrow('does not match the first certificate');
    expect(() => profileSigner('', pem('two.key'), Date.now)).toThrow('no certificate');
  });
});

describe('the settings of device management', () => {
  const env = {
    MDM_URL: 'https://mdm.example/',
    MDM_API_KEY: 'key',
    MDM_WEBHOOK_SECRET: 'sixteen letters!',
    MDM_TOPIC: 'com.apple.mgmt.External.1',
    MDM_ACME_DIRECTORY_URL: 'https://acme.example/{enrolment}',
  };

  it('are absent without a server address, and complete with one', () => {
    expect(readDeviceManagement({})).toBeNull();
    expect(readDeviceManagement(env)).toMatchObject({
      url: 'https://mdm.example',
      acmeHookSecret: 'sixteen letters!',
      signing: null,
      securityIntervalMs: 3_600_000,
      profile: { serverUrl: 'https://mdm.example/mdm', checkInUrl: 'https://mdm.example/mdm' },
    });
  });

  it.each([
    ['MDM_URL', 'ftp://mdm.example'],
    ['MDM_URL', 'https://user:password@mdm.example'],
    ['MDM_API_KEY', ''],
    ['MDM_WEBHOOK_SECRET', ''],
    ['MDM_WEBHOOK_SECRET', 'short'],
    ['MDM_TOPIC', 'com.example'],
    ['MDM_TOPIC', ''],
    ['MDM_ACME_DIRECTORY_URL', ''],
    ['MDM_SCEP_URL', 'https://scep.example'],
    ['MDM_PROFILE_KEY', 'key.pem'],
    ['MDM_SECURITY_INTERVAL_SECONDS', '0'],
    ['PUBLIC_URL', 'gateway'],
  ])('are refused with %s=%s', (name, value) => {
    const wrong = name === 'MDM_PROFILE_KEY' ? 'MDM_PROFILE_CERTIFICATE' : name;
    expect(() => readDeviceManagement({ ...env, [name]: value })).toThrow(wrong);
  });
});
