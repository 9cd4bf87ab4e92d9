/**
 * `GET /v1/providers/attestation`: the evidence for every connected provider, with the signed statements themselves, so that
 * anyone can check what is claimed, and a text that says what is not proved (spec: provider attestation record).
 */
import { toBase64 } from '@inference/protocol';
import type { FastifyInstance } from 'fastify';
import type { Fleet } from '../fleet/fleet.js';
import type { OnlineSession } from '../fleet/provider-session.js';

const ROOT_CA_URL = 'https://www.apple.com/certificateauthority/private/';
const ROOT_CA_NAME = 'Apple Enterprise Attestation Root CA';

const INSTRUCTIONS = [
  'Responses: X-Response-Hash is the SHA-256 of the response body (of a stream: all bytes before the signature event, comment lines left out).',
  'X-Se-Signature is an ECDSA P-256 SHA-256 signature in DER, base64, over the 64 ASCII digits of that hash; verify it with se_public_key (base64, 65-byte x963 point).',
  'Statements: attestation_statement and key_statement hold base64 payloads of canonical JSON; their signatures are by se_public_key over "inference/attestation/v1" or "inference/key/v1", a zero byte, and the payload.',
  'provider_id is the first 16 bytes of SHA-256(se_public_key) in hexadecimal; key_statement binds the key that requests are encrypted to.',
  'Chains: for records with mda_verified true, decode mda_cert_chain_b64 to DER and verify the chain up to the root named here; a record without it carries no proof by the maker of the machine.',
  'What is not proved: with trust_level self_signed every property of the machine is what it says of itself, and nothing shows that the key lives in a Secure Enclave;',
  'secure_enclave false means that it does not. No record proves what the provider keeps in memory or which program it runs; the agent hash is self-reported.',
  'The coordinator sees requests and responses in its memory while it relays them.',
].join(' ');

export function addAttestation(server: FastifyInstance, fleet: Fleet): void {
  server.get('/v1/providers/attestation', async () => ({
    providers: [...fleet.sessions()].map((session) => attestationRecord(fleet, session)),
    apple_root_ca_url: ROOT_CA_URL,
    apple_enterprise_root_ca: ROOT_CA_NAME,
    verification_instructions: INSTRUCTIONS,
  }));
}

function attestationRecord(fleet: Fleet, session: OnlineSession) {
  const { identity, hardware } = session.registration;
  const { attestation } = identity;
  const posture = session.posture ?? attestation.posture;
  return {
    provider_id: identity.providerId,
    trust_level: session.trust().level ?? 'self_signed',
    status: fleet.status(session),
    chip_name: attestation.chip_name,
    hardware_model: attestation.hardware_model,
    serial_number: attestation.serial_number,
    memory_gb: attestation.memory_gb,
    gpu_cores: hardware.gpu_cores,
    models: session.models.map((model) => model.id),
    secure_enclave: posture.secure_enclave,
    sip_enabled: posture.sip_enabled,
    secure_boot_enabled: posture.secure_boot_enabled,
    authenticated_root_enabled: posture.authenticated_root_enabled,
    se_public_key: toBase64(identity.publicKey),
    mdm_verified: false,
    acme_verified: false,
    mda_verified: false,
    key_protection: attestation.key_protection,
    attested: session.attested,
    attestation_statement: identity.attestationStatement,
    key_statement: session.key?.statement ?? null,
  };
}
