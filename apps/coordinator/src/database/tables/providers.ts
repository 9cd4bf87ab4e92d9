/** Tables of providers: device authorizations and tokens of linked ones, reputations, the model catalogue, receipts. */
export interface ProviderTables {
  /** One device authorization (RFC 8628). */
  device_codes: {
    /** Hexadecimal SHA-256 of the device code. */
    hash: string;
    /** As its owner types it, without the dash. */
    user_code: string;
    /** What the machine says of itself. */
    machine_name: string;
    chip_name: string | null;
    /** Where the request came from. */
    address: string | null;
    requested_at: number;
    expires_at: number;
    /** Pause that the agent must keep between two questions; `slow_down` lengthens it. */
    interval_ms: number;
    polled_at: number | null;
    /** Who decided. */
    account_id: string | null;
    approved_at: number | null;
    denied_at: number | null;
    /** Of the token that was given for it, once. */
    token_hash: string | null;
  };
  machine_tokens: {
    /** Hexadecimal SHA-256 of the token. */
    hash: string;
    account_id: string;
    machine_name: string;
    /** The enclave key that showed it first, and the only one that may. */
    provider_id: string | null;
    created_at: number;
    bound_at: number | null;
    revoked_at: number | null;
  };
  /**
   * Accounts that hold what a machine earns after its owner unlinked it, until somebody links it anew. The time before its
   * first owner has `provider:<its id>` and is not listed here.
   */
  unclaimed_accounts: { account: string; provider_id: string; since: number; claimed_by: string | null };
  provider_reputations: {
    provider_id: string;
    /** Weight of the failures, and times in a row that another was quicker, as they were at `at`. */
    weight: number;
    late: number;
    at: number;
    /** `cooldown`, `quarantine`, or null: it is not held back. The other columns of the restraint are null with it. */
    restraint_kind: string | null;
    restraint_reason: string | null;
    restraint_detail: string | null;
    restraint_since: number | null;
    restraint_until: number | null;
    cooldowns: number;
    quarantines: number;
    cooldowns_at: number;
    quarantines_at: number;
    /** When it was written, in milliseconds since 1970. */
    written_at: number;
  };
  catalogue_models: {
    id: string;
    display_name: string;
    quantization: string;
    model_type: 'text' | 'embedding' | 'image';
    /** Of a machine that serves it; null: not said. */
    min_memory_bytes: number | null;
    created_at: number;
    updated_at: number;
  };
  catalogue_files: { model_id: string; sha256: string };
  receipts: {
    job_id: string;
    account_id: string;
    /** base64url of the signed payload: ids, digests, counts and times. */
    receipt: string;
    receipt_signature: string;
    response_signature: string;
    created_at: number;
  };
}
