/** Managed devices: which device is which provider's, what it was asked, and the evidence it gave, as the bytes that came. */

export interface DeviceTables {
  device_enrolments: {
    id: string;
    provider_id: string;
    /** Lowercase hexadecimal SHA-256 of the x963 enclave key that asked for the enrolment. */
    se_key_sha256: string;
    /** base64 of that key; the nonces of its attestations are made from it. */
    se_public_key: string;
    /** As the provider states it. It goes into the profile and binds nothing. */
    serial_number: string;
    /** SHA-256 of the one-time download token; null once the profile was fetched. */
    download_hash: string | null;
    /** SHA-256 of the token that the device shows with everything it sends. */
    token_hash: string;
    state: EnrolmentState;
    /** The management server's id of the device, from its first check-in on. */
    device_id: string | null;
    created_at: number;
    /** An offer that no device took by then is void. */
    expires_at: number;
    bound_at: number | null;
    ended_at: number | null;
    end_reason: EnrolmentEnd | null;
  };
  device_commands: {
    uuid: string;
    enrolment_id: string;
    kind: DeviceCommandKind;
    sent_at: number;
    expires_at: number;
    ended_at: number | null;
    /** Null while an answer is awaited. */
    outcome: string | null;
  };
  /** One random part per enclave key and week; the nonce is derived from it, so that it can be published and recomputed. */
  device_nonces: { se_key_sha256: string; epoch: number; random: string; created_at: number };
  /** The newest evidence of each kind, verified again whenever it is read. */
  device_evidence: {
    se_key_sha256: string;
    kind: DeviceEvidenceKind;
    enrolment_id: string;
    /** What came, as JSON: property lists in base64, the nonce they answer to, an ACME challenge result. */
    payload: string;
    received_at: number;
  };
}

/** `offered` until a device checks in with the token, `bound` until it takes commands, then `active`. */
export type EnrolmentState = 'offered' | 'bound' | 'active' | 'ended';
export type EnrolmentEnd = 'superseded' | 'checked_out';
export type DeviceCommandKind = 'security_info' | 'device_information';
export type DeviceEvidenceKind = 'security_info' | 'attestation' | 'acme';
