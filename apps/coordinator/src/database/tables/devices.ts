/** Types of the tables of device management (MDM): enrolments, commands, nonces, and evidence as received. */

export interface DeviceTables {
  device_enrolments: {
    id: string;
    provider_id: string;
    /** Lowercase hexadecimal SHA-256 of the x963 enclave key that requested the enrolment. */
    se_key_sha256: string;
    /** The same enclave key in base64. Attestation nonces are derived from the key. */
    se_public_key: string;
    /** Serial number reported by the provider, written into the profile. Not used to bind the device. */
    serial_number: string;
    /** SHA-256 of the one-time download token; null after the download. */
    download_hash: string | null;
    /** SHA-256 of the token that the device sends with every message. */
    token_hash: string;
    state: EnrolmentState;
    /** Id of the device at the management server, from its first check-in on. */
    device_id: string | null;
    created_at: number;
    /** Expiry of an offer that no device has used. */
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
    /** Null while pending. */
    outcome: string | null;
  };
  /** Random value per enclave key and week (`epoch`), from which a nonce is derived, also later for verification. */
  device_nonces: { se_key_sha256: string; epoch: number; random: string; created_at: number };
  /** Newest evidence per enclave key and kind. Verified again at every read. */
  device_evidence: {
    se_key_sha256: string;
    kind: DeviceEvidenceKind;
    enrolment_id: string;
    /** Received data as JSON: property lists in base64, the answered nonce, an ACME challenge result. */
    payload: string;
    received_at: number;
  };
}

/** `offered` until a device checks in with the token, `bound` until the device accepts commands, then `active`. */
export type EnrolmentState = 'offered' | 'bound' | 'active' | 'ended';
export type EnrolmentEnd = 'superseded' | 'checked_out';
export type DeviceCommandKind = 'security_info' | 'device_information';
export type DeviceEvidenceKind = 'security_info' | 'attestation' | 'acme';
