/**
 * Encodes the two device-management commands: a query of protections such as SIP, and one of identity with a fresh attestation.
 *
 * Neither changes anything on the device.
 */
import { encodePlist } from './plist/plist.js';

/** Maximum size of a nonce that devices accept. */
const MAX_NONCE_BYTES = 32;

export const COMMAND_KINDS = ['security_info', 'device_information'] as const;
export type CommandKind = (typeof COMMAND_KINDS)[number];

export type DeviceCommand =
  | { readonly kind: 'security_info'; readonly uuid: string }
  | { readonly kind: 'device_information'; readonly uuid: string; readonly nonce: Uint8Array };

/** `RequestType` of each kind in Apple's MDM protocol. */
export const REQUEST_TYPES: Readonly<Record<CommandKind, string>> = {
  security_info: 'SecurityInfo',
  device_information: 'DeviceInformation',
};

/** Queried together, because each value must match the certificate in the same answer. */
const IDENTITY_QUERIES = ['SerialNumber', 'ProvisioningUDID', 'SoftwareUpdateDeviceID', 'DevicePropertiesAttestation'] as const;

/** Encodes a command as an XML property list. Throws RangeError for a nonce that devices would reject. */
export function encodeCommand(command: DeviceCommand): string {
  const RequestType = REQUEST_TYPES[command.kind];
  switch (command.kind) {
    case 'security_info':
      return encodePlist({ CommandUUID: command.uuid, Command: { RequestType } });
    case 'device_information': {
      const { nonce } = command;
      if (nonce.length === 0 || nonce.length > MAX_NONCE_BYTES) throw new RangeError('a device attestation nonce has 1 to 32 bytes');
      return encodePlist({ CommandUUID: command.uuid, Command: { RequestType, Queries: IDENTITY_QUERIES, DeviceAttestationNonce: nonce } });
    }
  }
}
