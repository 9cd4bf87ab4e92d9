/** `SoftwareEnclave`: signs enclave statements with a software key, for test providers. Unlike a real helper, also false ones. */
import { type Attestation, type JsonValue, type KeyStatement, type Posture, type SignedStatement, toBase64 } from '@inference/protocol';
import { keyIdOf, providerIdOf, sha256Hex } from '@inference/protocol/crypto';
import { EnclaveKey } from './enclave-key.js';

export const GOOD_POSTURE: Posture = {
  secure_enclave: false,
  sip_enabled: true,
  secure_boot_enabled: true,
  authenticated_root_enabled: true,
};

export class SoftwareEnclave extends EnclaveKey {
  get providerId() {
    return providerIdOf(this.publicKey);
  }

  attestation(change: Partial<Attestation> = {}): SignedStatement {
    return this.statement('attestation', {
      v: 1,
      se_public_key: toBase64(this.publicKey),
      key_protection: 'software',
      chip_name: 'Scripted',
      hardware_model: 'Scripted1,1',
      serial_number: `SCR${this.providerId.slice(0, 9)}`,
      os_version: '1.0',
      memory_gb: 16,
      posture: GOOD_POSTURE,
      agent: { version: '0.0.0' },
      issued_at: Date.now(),
      ...change,
    } as JsonValue);
  }

  challengeAnswer(nonce: string, sessionId: string, change: Record<string, JsonValue> = {}): SignedStatement {
    return this.statement('challenge', { v: 1, nonce, session_id: sessionId, posture: GOOD_POSTURE, issued_at: Date.now(), ...change });
  }

  keyStatement(x25519: Uint8Array, attestation: SignedStatement, change: Partial<KeyStatement> = {}): SignedStatement {
    return this.statement('key', {
      v: 1,
      provider_id: this.providerId,
      key_id: keyIdOf(x25519),
      x25519_public_key: toBase64(x25519),
      not_before: Date.now() - 1000,
      not_after: Date.now() + 30 * 60_000,
      attestation_sha256: sha256Hex(Buffer.from(attestation.payload, 'base64')),
      ...change,
    } as JsonValue);
  }
}
