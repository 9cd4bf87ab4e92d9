/**
 * Builds the extensions in which Apple's attestation certificates state facts about a Mac.
 *
 * Values are raw bytes without DER, except two INTEGERs: SIP (0: on) and third-party kernel extensions (0: not allowed).
 */
import { utf8 } from '@inference/protocol';
import { derInteger, type Extension } from './certificate.js';

const ARC = '1.2.840.113635.100.8';

export const DEVICE_OIDS = {
  serial: `${ARC}.9.1`,
  udid: `${ARC}.9.2`,
  board: `${ARC}.9.4`,
  osVersion: `${ARC}.10.1`,
  sepOsVersion: `${ARC}.10.2`,
  llbVersion: `${ARC}.10.3`,
  freshness: `${ARC}.11.1`,
  sip: `${ARC}.13.1`,
  secureBoot: `${ARC}.13.2`,
  kexts: `${ARC}.13.3`,
} as const;

export interface AttestedDevice {
  readonly serialNumber: string;
  /** For example `00006041-00112233AABBCCDC`: chip identifier and number of the individual chip. */
  readonly provisioningUdid: string;
  /** Board, for example `J575cAP`. */
  readonly softwareUpdateDeviceId: string;
  readonly osVersion: string;
  readonly sepOsVersion: string;
  /** Version of the low-level boot loader. */
  readonly llbVersion: string;
  readonly sipEnabled: boolean;
  readonly secureBoot: 'Full Security' | 'Reduced Security' | 'Permissive Security';
  readonly thirdPartyKextsAllowed: boolean;
}

/** Extensions in the order of real certificates. `freshness`: freshness code of 32 bytes. */
export function deviceExtensions(device: AttestedDevice, freshness: Uint8Array): Extension[] {
  const values: readonly (readonly [string, Uint8Array])[] = [
    [DEVICE_OIDS.sepOsVersion, utf8(device.sepOsVersion)],
    [DEVICE_OIDS.llbVersion, utf8(device.llbVersion)],
    [DEVICE_OIDS.osVersion, utf8(device.osVersion)],
    [DEVICE_OIDS.board, utf8(device.softwareUpdateDeviceId)],
    [DEVICE_OIDS.secureBoot, utf8(device.secureBoot)],
    [DEVICE_OIDS.sip, derInteger(device.sipEnabled ? 0 : 1)],
    [DEVICE_OIDS.kexts, derInteger(device.thirdPartyKextsAllowed ? 1 : 0)],
    [DEVICE_OIDS.serial, utf8(device.serialNumber)],
    [DEVICE_OIDS.udid, utf8(device.provisioningUdid)],
    [DEVICE_OIDS.freshness, freshness],
  ];
  return values.map(([oid, value]) => ({ oid, critical: false, value }));
}
