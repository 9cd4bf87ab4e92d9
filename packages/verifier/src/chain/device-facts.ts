/**
 * Reads device facts from Apple's extensions of a leaf certificate.
 *
 * Each fact has one accepted encoding. Values are never unwrapped, because a freshness code may look like a wrapped value.
 */
import { DEVICE_FIELDS, type DeviceField, equalBytes, fromHex, utf8 } from '@inference/protocol';
import type { CertificateExtension } from './certificate.js';

export interface DeviceFacts {
  readonly serial: string;
  /** ProvisioningUDID. */
  readonly udid: string;
  /** Software Update Device ID. */
  readonly board: string;
  readonly os_version: string;
  readonly sepos_version: string;
  readonly llb_version: string;
  /** 32 bytes. */
  readonly freshness: Uint8Array;
  readonly sipEnabled: boolean;
  readonly secureBoot: 'Full Security' | 'Reduced Security' | 'Permissive Security';
  readonly thirdPartyKexts: boolean;
}

const VENDOR = '1.2.840.113635.100.8.';
const OIDS: Record<DeviceField, string> = {
  serial: `${VENDOR}9.1`,
  udid: `${VENDOR}9.2`,
  board: `${VENDOR}9.4`,
  os_version: `${VENDOR}10.1`,
  sepos_version: `${VENDOR}10.2`,
  llb_version: `${VENDOR}10.3`,
  freshness: `${VENDOR}11.1`,
  sip: `${VENDOR}13.1`,
  secure_boot: `${VENDOR}13.2`,
  kexts: `${VENDOR}13.3`,
};

const VERSION = /^[0-9]{1,4}(?:\.[0-9]{1,4}){0,4}$/;
/** Formats of Apple's certificates, in raw ASCII, with room for boards and versions to come. */
const FORMS = {
  serial: /^[A-Z0-9]{8,14}$/,
  udid: /^0000[0-9A-F]{4}-[0-9A-F]{16}$/,
  board: /^[A-Za-z0-9]{2,32}$/,
  os_version: VERSION,
  sepos_version: VERSION,
  llb_version: VERSION,
} as const;

const INTEGER_0 = fromHex('020100');
const INTEGER_1 = fromHex('020101');
const SECURE_BOOT = ['Full Security', 'Reduced Security', 'Permissive Security'] as const;

export type FactsResult =
  | { readonly ok: true; readonly facts: DeviceFacts }
  | { readonly ok: false; readonly code: `${DeviceField}_missing` | `${DeviceField}_malformed` };

/** Facts, or the first missing or malformed one. `extensions` must contain no duplicates. */
export function readDeviceFacts(extensions: readonly CertificateExtension[]): FactsResult {
  const values = new Map(extensions.map(({ oid, value }) => [oid, value]));
  for (const field of DEVICE_FIELDS) if (!values.has(OIDS[field])) return { ok: false, code: `${field}_missing` };
  const raw = (field: DeviceField): Uint8Array => values.get(OIDS[field]) ?? new Uint8Array(0);
  const text = (field: keyof typeof FORMS): string | null => textMatching(raw(field), FORMS[field]);
  const facts = {
    serial: text('serial'),
    udid: text('udid'),
    board: text('board'),
    os_version: text('os_version'),
    sepos_version: text('sepos_version'),
    llb_version: text('llb_version'),
    freshness: raw('freshness').length === 32 ? raw('freshness') : null,
    sip: isZero(raw('sip')),
    secure_boot: SECURE_BOOT.find((level) => equalBytes(utf8(level), raw('secure_boot'))) ?? null,
    kexts: isZero(raw('kexts')),
  };
  const { serial, udid, board, os_version, sepos_version, llb_version, freshness, sip, secure_boot, kexts } = facts;
  if (serial === null || udid === null || board === null || os_version === null || sepos_version === null) return malformedFacts(facts);
  if (llb_version === null || freshness === null || sip === null || secure_boot === null || kexts === null) return malformedFacts(facts);
  const names = { serial, udid, board, os_version, sepos_version, llb_version };
  // Zero is the safe state of both: system integrity protection on, third-party kernel extensions not allowed.
  return { ok: true, facts: { ...names, freshness, sipEnabled: sip, secureBoot: secure_boot, thirdPartyKexts: !kexts } };
}

function malformedFacts(facts: Readonly<Record<DeviceField, unknown>>): FactsResult {
  const field = DEVICE_FIELDS.find((name) => facts[name] === null) ?? 'serial';
  return { ok: false, code: `${field}_malformed` };
}

/** True for the DER INTEGER 0, false for 1, null for anything else. */
function isZero(value: Uint8Array): boolean | null {
  if (equalBytes(value, INTEGER_0)) return true;
  return equalBytes(value, INTEGER_1) ? false : null;
}

function textMatching(value: Uint8Array, form: RegExp): string | null {
  const text = value.length > 64 ? '' : String.fromCharCode(...value);
  return form.test(text) ? text : null;
}

/** Chip names. Key: chip identifier, the first part of a UDID. */
const CHIPS: Readonly<Record<string, string>> = {
  '00006021': 'M2 Max',
  '00006032': 'M3 Ultra',
  '00006040': 'M4 Pro',
  '00006041': 'M4 Max',
};

/** False only if the UDID begins with the identifier of a known chip, and the claim names another chip. */
export function chipMatchesUdid(claimed: string, udid: string): boolean {
  const [number] = udid.split('-');
  const known = number === undefined ? undefined : CHIPS[number];
  return known === undefined || claimed === known || claimed === `Apple ${known}`;
}
