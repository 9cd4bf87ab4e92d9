/** Machines that their owners sign in. Codes and tokens are kept as hashes; a user code lives for minutes and opens nothing by itself. */

export interface MachineTables {
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
}
