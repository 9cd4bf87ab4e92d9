/** `enrolmentProfile` builds the profile (XML property list) that enrols a Mac. Grants only queries of device and security information. */
import { createHash, randomBytes } from 'node:crypto';
import { type EncodablePlist, encodePlist } from './plist/plist.js';

/** Source of the certificate with which the Mac signs its messages to the management server. */
export type DeviceIdentitySource =
  /** `{enrolment}` in the URL is replaced by the token of the enrolment. */
  | { readonly kind: 'acme'; readonly directoryUrl: string }
  | { readonly kind: 'scep'; readonly url: string; readonly challenge: string | null };

export interface ProfileSettings {
  /** URLs of the management server for devices. */
  readonly serverUrl: string;
  readonly checkInUrl: string;
  /** Topic of the push certificate, `com.apple.mgmt.…`. */
  readonly topic: string;
  readonly identity: DeviceIdentitySource;
  /** Shown to the owner. */
  readonly organization: string;
}

interface ProfileSubject {
  /** Enrolment token. */
  readonly token: string;
  /** Name of the query parameter that carries the token. */
  readonly parameter: string;
  readonly providerId: string;
  readonly serialNumber: string;
  /** Three new UUIDs, for the profile, the identity payload and the management payload. */
  readonly uuids: readonly [string, string, string];
}

/** Rights to query device information (16) and security information (1024), which the two commands need. */
export const ACCESS_RIGHTS = 16 | 1024;

export function enrolmentProfile(settings: ProfileSettings, subject: ProfileSubject): string {
  const [profileUuid, identityUuid, managementUuid] = subject.uuids;
  const prefix = `network.inference.enrolment.${subject.providerId}`;
  const organization = settings.organization;
  return encodePlist({
    PayloadType: 'Configuration',
    PayloadVersion: 1,
    PayloadIdentifier: prefix,
    PayloadUUID: profileUuid,
    PayloadDisplayName: `${organization}: proof of protections`,
    PayloadDescription:
      'Lets the network ask this Mac for its security settings and for an attestation by its manufacturer. It cannot read files, lock, erase or change anything. Remove it at any time.',
    PayloadOrganization: organization,
    PayloadScope: 'System',
    PayloadRemovalDisallowed: false,
    PayloadContent: [
      {
        ...identityPayload(settings.identity, subject),
        PayloadVersion: 1,
        PayloadIdentifier: `${prefix}.identity`,
        PayloadUUID: identityUuid,
      },
      {
        PayloadType: 'com.apple.mdm',
        PayloadVersion: 1,
        PayloadIdentifier: `${prefix}.management`,
        PayloadUUID: managementUuid,
        IdentityCertificateUUID: identityUuid,
        Topic: settings.topic,
        ServerURL: withToken(settings.serverUrl, subject),
        CheckInURL: withToken(settings.checkInUrl, subject),
        AccessRights: ACCESS_RIGHTS,
        CheckOutWhenRemoved: true,
        SignMessage: true,
      },
    ],
  });
}

function identityPayload(source: DeviceIdentitySource, subject: ProfileSubject): Record<string, EncodablePlist> {
  const subjectName = [[['CN', subject.serialNumber]]];
  switch (source.kind) {
    case 'acme':
      return {
        PayloadType: 'com.apple.security.acme',
        DirectoryURL: source.directoryUrl.replaceAll('{enrolment}', encodeURIComponent(subject.token)),
        ClientIdentifier: subject.serialNumber,
        KeyType: 'ECSECPrimeRandom',
        KeySize: 384,
        HardwareBound: true,
        Attest: true,
        Subject: subjectName,
        // Key usage: digital signature.
        UsageFlags: 1,
      };
    case 'scep':
      return {
        PayloadType: 'com.apple.security.scep',
        PayloadContent: {
          URL: source.url,
          ...(source.challenge === null ? {} : { Challenge: source.challenge }),
          'Key Type': 'RSA',
          Keysize: 2048,
          'Key Usage': 1,
          Subject: subjectName,
        },
      };
  }
}

function withToken(url: string, { parameter, token }: ProfileSubject): string {
  const address = new URL(url);
  address.searchParams.set(parameter, token);
  return address.href;
}

/** Query parameter with the token, in the management URLs of a profile. The management server forwards it with every message. */
export const ENROLMENT_PARAMETER = 'enrolment';

export function newToken(): string {
  return randomBytes(32).toString('base64url');
}

/** SHA-256 in hexadecimal. */
export function hashToken(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}
