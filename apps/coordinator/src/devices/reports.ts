/** Parses messages of managed devices from property lists into typed values. Relevant members must be well-formed; others are dropped. */
import { type PlistDict, type PlistRefusal, type PlistValue, parsePlist } from './plist/plist.js';

/** Protections of a Mac, as reported to device management. Null: not reported. */
export interface SecurityInfo {
  readonly systemIntegrityProtection: boolean | null;
  readonly secureBootLevel: 'off' | 'medium' | 'full' | 'not supported' | null;
  readonly diskEncryption: boolean | null;
  readonly authenticatedRootVolume: boolean | null;
}

/** Identity that a device reports, with its attestation certificates. */
export interface DeviceInformation {
  readonly serialNumber: string | null;
  /** Provisioning UDID (`0000CCCC-…`), which differs from the UDID in device management. */
  readonly provisioningUdid: string | null;
  readonly softwareUpdateDeviceId: string | null;
  /** DER certificates, leaf first; null if the device sent none. */
  readonly attestation: readonly Uint8Array[] | null;
}

export type ReportContent =
  | { readonly kind: 'security_info'; readonly info: SecurityInfo }
  | { readonly kind: 'device_information'; readonly info: DeviceInformation }
  /** The message contains no answer to one of the two queries. */
  | { readonly kind: 'other' };

export interface DeviceReport {
  /** UDID in device management; null for enrolments with another kind of id. */
  readonly udid: string | null;
  readonly commandUuid: string | null;
  readonly status: ReportStatus;
  readonly content: ReportContent;
}

const REPORT_STATUSES = ['Acknowledged', 'Error', 'CommandFormatError', 'Idle', 'NotNow'] as const;
type ReportStatus = (typeof REPORT_STATUSES)[number];

interface DeviceCheckIn {
  readonly messageType: string;
  readonly udid: string | null;
}

export type ReportRefusal = PlistRefusal | 'report_malformed';
export type Read<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly code: ReportRefusal };

const SECURE_BOOT_LEVELS = ['off', 'medium', 'full', 'not supported'] as const;
const MAX_TEXT = 128;
/** A valid chain has two certificates. Longer ones are accepted here, so that the verifier reports the fault. */
const MAX_CERTIFICATES = 8;

class Malformed extends Error {}

/** Parses a device's answer to a command. Never throws. */
export function readReport(rawPlist: Uint8Array): Read<DeviceReport> {
  return read(rawPlist, (report) => {
    const status = REPORT_STATUSES.find((known) => known === report.get('Status'));
    if (status === undefined) throw new Malformed();
    return { udid: readText(report, 'UDID'), commandUuid: readText(report, 'CommandUUID'), status, content: contentOf(report) };
  });
}

/** Parses a check-in message (Authenticate, TokenUpdate, CheckOut, …). Never throws. */
export function readCheckIn(rawPlist: Uint8Array): Read<DeviceCheckIn> {
  return read(rawPlist, (message) => {
    const messageType = readText(message, 'MessageType');
    if (messageType === null) throw new Malformed();
    return { messageType, udid: readText(message, 'UDID') };
  });
}

function read<T>(rawPlist: Uint8Array, reader: (dict: PlistDict) => T): Read<T> {
  const parsed = parsePlist(rawPlist);
  if (!parsed.ok) return parsed;
  try {
    return { ok: true, value: reader(dictionary(parsed.value)) };
  } catch (error) {
    if (error instanceof Malformed) return { ok: false, code: 'report_malformed' };
    throw error;
  }
}

function contentOf(report: PlistDict): ReportContent {
  const security = report.get('SecurityInfo');
  if (security !== undefined) return { kind: 'security_info', info: securityInfo(dictionary(security)) };
  const answers = report.get('QueryResponses');
  if (answers !== undefined) return { kind: 'device_information', info: deviceInformation(dictionary(answers)) };
  return { kind: 'other' };
}

function securityInfo(info: PlistDict): SecurityInfo {
  const secureBoot = info.get('SecureBoot');
  const level = secureBoot === undefined ? null : readText(dictionary(secureBoot), 'SecureBootLevel');
  const known = SECURE_BOOT_LEVELS.find((candidate) => candidate === level);
  if (level !== null && known === undefined) throw new Malformed();
  return {
    systemIntegrityProtection: flag(info, 'SystemIntegrityProtectionEnabled'),
    secureBootLevel: known ?? null,
    diskEncryption: flag(info, 'FDE_Enabled'),
    authenticatedRootVolume: flag(info, 'AuthenticatedRootVolumeEnabled'),
  };
}

function deviceInformation(answers: PlistDict): DeviceInformation {
  return {
    serialNumber: readText(answers, 'SerialNumber'),
    provisioningUdid: readText(answers, 'ProvisioningUDID'),
    softwareUpdateDeviceId: readText(answers, 'SoftwareUpdateDeviceID'),
    attestation: certificates(answers.get('DevicePropertiesAttestation')),
  };
}

function certificates(value: PlistValue | undefined): readonly Uint8Array[] | null {
  if (value === undefined) return null;
  if (!Array.isArray(value) || value.length > MAX_CERTIFICATES) throw new Malformed();
  const chain = (value as readonly PlistValue[]).map((certificate) => {
    if (!(certificate instanceof Uint8Array)) throw new Malformed();
    return certificate;
  });
  return chain.length === 0 ? null : chain;
}

function dictionary(value: PlistValue): PlistDict {
  if (value instanceof Map) return value;
  throw new Malformed();
}

/** Reads a text of printable ASCII, because these identifiers are shown to people. */
function readText(dict: PlistDict, key: string): string | null {
  const value = dict.get(key);
  if (value === undefined) return null;
  if (typeof value !== 'string' || value.length > MAX_TEXT || !/^[\x20-\x7e]+$/.test(value)) throw new Malformed();
  return value;
}

function flag(dict: PlistDict, key: string): boolean | null {
  const value = dict.get(key);
  if (value === undefined) return null;
  if (typeof value !== 'boolean') throw new Malformed();
  return value;
}
