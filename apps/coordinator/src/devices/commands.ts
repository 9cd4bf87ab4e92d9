/** Property lists of the two commands: protections, and identity with a fresh attestation. Neither changes a device. */
import { encodePlist } from './plist/plist.js';

/** Maximum nonce that devices accept, in bytes. */
const MAX_NONCE_BYTES = 32;

export const COMMAND_KINDS = ['security_info', 'device_information'] as const;
export type CommandKind = (typeof COMMAND_KINDS)[number];

export type DeviceCommand =
  | { readonly kind: 'security_info'; readonly uuid: string }
  | { readonly kind: 'device_information'; readonly uuid: string /** Raw, at most 32 bytes. */; readonly nonce: Uint8Array };

/** `RequestType` of each kind in the management protocol. */
export const REQUEST_TYPES: Readonly<Record<CommandKind, string>> = {
  security_info: 'SecurityInfo',
  device_information: 'DeviceInformation',
};

/** Queried together, because each must match the certificate in the same answer. */
const IDENTITY_QUERIES = ['SerialNumber', 'ProvisioningUDID', 'SoftwareUpdateDeviceID', 'DevicePropertiesAttestation'] as const;

/** XML property list of a command. Throws RangeError for a nonce that devices would refuse. */
export function encodeCommand(command: DeviceCommand): string {
  const RequestType = REQUEST_TYPES[command.kind];
  switch (command.kind) {
    case 'security_info':
      return encodePlist({ CommandUUID: command.uuid, Command: { RequestType } });
    case 'device_information': {
      const { nonce } = command;
      if (nonce.length === 0 || nonce.length > MAX_NONCE_BYTES) throw new RangeError('a device attestation nonce has 1 to 32 bytes');
      return encodePlist({
        CommandUUID: command.uuid,
        Command: { RequestType, Queries: IDENTITY_QUERIES, DeviceAttestationNonce: nonce },
      });
    }
  }
}
