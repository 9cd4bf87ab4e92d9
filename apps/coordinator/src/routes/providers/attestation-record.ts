/** `attestationRecord` builds the public attestation record of a provider: claims about its Mac, and the evidence for them. */
import { type AttestationRecord, type EnclaveEvidence, type PublishedAnchor, toBase64 } from '@inference/protocol';
import type { ProviderSnapshot } from '../../providers/provider-snapshot.js';
import type { TrustAnchor } from '../../providers/verification/chain/trust-anchor.js';
import { isPartOk, type TrustVerdict } from '../../providers/verification/trust-policy.js';
import { isAcmeVerified } from '../../providers/verification/verify-device-evidence.js';

/** `models` are the ids of the provider's models in the public model list. */
export function attestationRecord(provider: ProviderSnapshot, models: string[], anchor: TrustAnchor): AttestationRecord {
  const { identity, hardware } = provider.registration;
  const { attestation } = identity;
  const { trust, lastChallenge } = provider;
  const posture = provider.posture ?? attestation.posture;
  return {
    provider_id: identity.providerId,
    trust_level: trust.level ?? 'self_signed',
    status: provider.status,
    chip_name: attestation.chip_name,
    hardware_model: attestation.hardware_model,
    serial_number: attestation.serial_number,
    memory_gb: attestation.memory_gb,
    gpu_cores: hardware.gpu_cores,
    models,
    weights: provider.models.flatMap(({ id, file_sha256 }) =>
      models.includes(id) ? weightsOf(id, provider.statistics.signedWeights.get(id), file_sha256) : [],
    ),
    secure_enclave: posture.secure_enclave,
    enclave_evidence: enclaveEvidence(anchor, provider),
    sip_enabled: posture.sip_enabled,
    secure_boot_enabled: posture.secure_boot_enabled,
    authenticated_root_enabled: posture.authenticated_root_enabled,
    se_public_key: toBase64(identity.publicKey),
    mdm_verified: isPartOk(trust, 'device_management'),
    ...acmeMembers(provider),
    ...chainMembers(provider),
    mda_binding: bindingOf(trust),
    attested: provider.isAttested,
    simulated: identity.simulated,
    key_protection: attestation.key_protection,
    attestation_statement: identity.attestationStatement,
    key_statement: provider.key?.statement ?? null,
    last_challenge:
      lastChallenge === null
        ? null
        : {
            nonce: lastChallenge.nonce,
            session_id: lastChallenge.sessionId,
            statement: lastChallenge.statement,
            answered_at: lastChallenge.answeredAt,
          },
    trust_parts: trust.parts.map(({ name, state, reason }) => ({ part: name, state, reason })),
  };
}

type Weights = NonNullable<AttestationRecord['weights']>;

/** Weights hash of a model. The hash in the newest signed receipt takes precedence over that in the offer. */
function weightsOf(model: string, signed: string | undefined, offered: string | undefined): Weights {
  if (signed !== undefined) return [{ model, sha256: signed, source: 'receipt' }];
  return offered === undefined ? [] : [{ model, sha256: offered, source: 'offer' }];
}

export function publishedAnchor(anchor: TrustAnchor): PublishedAnchor {
  return {
    common_name: anchor.commonName,
    name: toBase64(anchor.name),
    public_key: toBase64(anchor.publicKey),
    simulated: anchor.isSimulated,
  };
}

/** How well it is proved that the key is in a Secure Enclave: by a certificate chain, only by the provider's claim, or simulated. */
function enclaveEvidence(anchor: TrustAnchor, provider: ProviderSnapshot): EnclaveEvidence {
  const { identity } = provider.registration;
  const posture = provider.posture ?? identity.attestation.posture;
  if (identity.simulated || !posture.secure_enclave) return 'simulated';
  if (!provider.isDeviceChainVerified) return 'claimed';
  return anchor.isSimulated ? 'simulated' : 'certified';
}

type ChainMembers = Pick<
  AttestationRecord,
  'mda_verified' | 'mda_cert_chain_b64' | 'mda_serial' | 'mda_udid' | 'mda_os_version' | 'mda_sepos_version' | 'mda_nonce_preimage'
>;

/** Members about Apple's certificate chain for the device (managed device attestation). Published only while verified for this key. */
function chainMembers(provider: ProviderSnapshot): ChainMembers {
  const chain = provider.device?.chain;
  const evidence = provider.device?.evidence.chain;
  if (!provider.isDeviceChainVerified || chain?.kind !== 'verified' || !evidence) return { mda_verified: false };
  const { facts } = chain;
  return {
    mda_verified: true,
    mda_cert_chain_b64: [...evidence.certificates],
    mda_serial: facts.serialNumber,
    mda_udid: facts.provisioningUdid,
    mda_os_version: facts.osVersion,
    mda_sepos_version: facts.sepOsVersion,
    mda_nonce_preimage: evidence.preimage,
  };
}

function acmeMembers(provider: ProviderSnapshot): Pick<AttestationRecord, 'acme_verified' | 'acme_attestation'> {
  const evidence = provider.device?.evidence.acme;
  if (!evidence || !isAcmeVerified(provider.device, provider.registration.identity)) return { acme_verified: false };
  return { acme_verified: true, acme_attestation: { cert_chain_b64: [...evidence.certificates], token: evidence.token } };
}

function bindingOf(trust: TrustVerdict): AttestationRecord['mda_binding'] {
  const state = trust.parts.find(({ name }) => name === 'key_binding')?.state;
  if (state === 'ok') return 'bound';
  return state === 'stale' ? 'stale' : 'none';
}
