/**
 * Reads the facts about a Mac from the extensions of its attestation certificate. Used by `verifyDeviceChain`.
 *
 * Each value is read by the encoding of its OID. Detecting ASN.1 instead would misread freshness codes, which are random bytes.
 */
import type { ChainRejection, DeviceField } from '@inference/protocol';
import { type Certificate, extensionValues } from './certificate.js';

/** Apple's OID arc for attested device properties. */
const ARC = '1.2.840.113635.100.8';

/** OID of each property. The names also appear in rejection codes. */
export const DEVICE_OIDS: Readonly<Record<DeviceField, string>> = {
  serial: `${ARC}.9.1`,
  udid: `${ARC}.9.2`,
  board: `${ARC}.9.4`,
  os_version: `${ARC}.10.1`,
  sepos_version: `${ARC}.10.2`,
  llb_version: `${ARC}.10.3`,
  freshness: `${ARC}.11.1`,
  sip: `${ARC}.13.1`,
  secure_boot: `${ARC}.13.2`,
  kexts: `${ARC}.13.3`,
};

const SECURE_BOOT_LEVELS = ['Full Security', 'Reduced Security', 'Permissive Security'] as const;
export type SecureBootLevel = (typeof SECURE_BOOT_LEVELS)[number];

export interface DeviceFacts {
  readonly serialNumber: string;
  /** UDID, such as `00006041-00112233AABBCCDC`. Digits 5 to 8 identify the chip. */
  readonly provisioningUdid: string;
  /** Model of the main board, such as `J616cAP`. Called `board` in rejection codes. */
  readonly softwareUpdateDeviceId: string;
  readonly osVersion: string;
  /** Version of sepOS, the operating system of the Secure Enclave. */
  readonly sepOsVersion: string;
  /** Version of the low-level bootloader. */
  readonly llbVersion: string;
  /** Freshness code, 32 bytes: binds the certificate to a nonce. */
  readonly freshness: Uint8Array;
  readonly sipEnabled: boolean;
  readonly secureBoot: SecureBootLevel;
  readonly thirdPartyKextsAllowed: boolean;
}

const VERSION = /^\d{1,4}(\.\d{1,4}){0,4}$/;

/** Reads all facts. Calls `refuse`, which must throw, if a value is absent or malformed. */
export function readDeviceFacts(leaf: Certificate, refuse: (code: ChainRejection) => never): DeviceFacts {
  const read = <T>(field: DeviceField, parse: (value: Uint8Array) => T | null): T => {
    const [value] = extensionValues(leaf, DEVICE_OIDS[field]);
    if (value === undefined) return refuse(`${field}_missing`);
    return parse(value) ?? refuse(`${field}_malformed`);
  };
  return {
    serialNumber: read('serial', textLike(/^[0-9A-Z]{8,14}$/)),
    provisioningUdid: read('udid', textLike(/^0000[0-9A-F]{4}-[0-9A-F]{16}$/)),
    softwareUpdateDeviceId: read('board', textLike(/^[0-9A-Za-z]{2,32}$/)),
    osVersion: read('os_version', textLike(VERSION)),
    sepOsVersion: read('sepos_version', textLike(VERSION)),
    llbVersion: read('llb_version', textLike(VERSION)),
    freshness: read('freshness', (value) => (value.length === 32 ? Uint8Array.from(value) : null)),
    // 0 is the protected state in both INTEGERs.
    sipEnabled: read('sip', zeroOrOne) === 0,
    secureBoot: read('secure_boot', secureBootLevel),
    thirdPartyKextsAllowed: read('kexts', zeroOrOne) === 1,
  };
}

/** Parser for plain ASCII text that matches `pattern`. */
function textLike(pattern: RegExp): (value: Uint8Array) => string | null {
  return (value) => {
    if (value.length > 64) return null;
    const text = String.fromCharCode(...value);
    return pattern.test(text) ? text : null;
  };
}

/** Reads a DER INTEGER of 0 or 1; null for any other value. */
function zeroOrOne(value: Uint8Array): 0 | 1 | null {
  const [tag, length, number] = value;
  if (value.length !== 3 || tag !== 0x02 || length !== 0x01) return null;
  return number === 0 || number === 1 ? number : null;
}

function secureBootLevel(value: Uint8Array): SecureBootLevel | null {
  const text = textLike(/^[A-Za-z ]+$/)(value);
  return SECURE_BOOT_LEVELS.find((level) => level === text) ?? null;
}

/** Chip names by chip identifier. A chip may have several identifiers. */
const CHIPS: Readonly<Record<string, string>> = {
  '8103': 'Apple M1',
  '6000': 'Apple M1 Pro',
  '6001': 'Apple M1 Max',
  '6002': 'Apple M1 Ultra',
  '8112': 'Apple M2',
  '6020': 'Apple M2 Pro',
  '6021': 'Apple M2 Max',
  '6022': 'Apple M2 Ultra',
  '8122': 'Apple M3',
  '6030': 'Apple M3 Pro',
  '6031': 'Apple M3 Max',
  '6034': 'Apple M3 Max',
  '6032': 'Apple M3 Ultra',
  '8132': 'Apple M4',
  '6040': 'Apple M4 Pro',
  '6041': 'Apple M4 Max',
};

/** Chip name for a UDID. Null: the chip identifier is unknown. */
export function chipOfUdid(provisioningUdid: string): string | null {
  return CHIPS[provisioningUdid.slice(4, 8)] ?? null;
}
