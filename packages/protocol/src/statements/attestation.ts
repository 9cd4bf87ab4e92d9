/**
 * Attestation: a description of the machine, signed by its enclave key.
 *
 * The statement alone is only a claim. Device management and Apple's certificate chain are the evidence.
 */
import Type, { type Static } from 'typebox';
import { Base64Schema, MillisecondsSchema, Sha256HexSchema } from '../ids.js';
import { labelSchema } from '../label.js';
import { statementOpener } from './signed-statement.js';

/** Security settings of the machine at the time of signing. */
export const PostureSchema = Type.Object({
  /** Whether a Secure Enclave holds the key; false for the simulated helper. */
  secure_enclave: Type.Boolean(),
  sip_enabled: Type.Boolean(),
  secure_boot_enabled: Type.Boolean(),
  authenticated_root_enabled: Type.Boolean(),
});
export type Posture = Static<typeof PostureSchema>;

const Label = labelSchema(128);

export const AttestationSchema = Type.Object({
  v: Type.Literal(1),
  /** base64 of the 65-byte x963 P-256 public key. */
  se_public_key: Base64Schema,
  /** Storage of the key: a file wrapped by the enclave, a keychain group, or software (simulated). */
  key_protection: Type.Union([Type.Literal('file'), Type.Literal('keychain_group'), Type.Literal('software')]),
  chip_name: Label,
  hardware_model: Label,
  serial_number: Label,
  os_version: Label,
  /** Unified memory in GiB. */
  memory_gb: Type.Integer({ minimum: 1, maximum: 65_536 }),
  posture: PostureSchema,
  agent: Type.Object({ version: Label, sha256: Type.Optional(Sha256HexSchema) }),
  issued_at: MillisecondsSchema,
});
export type Attestation = Static<typeof AttestationSchema>;

export const openAttestation = statementOpener('attestation', AttestationSchema);
