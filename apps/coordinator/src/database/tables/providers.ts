/** Types of the tables of providers: linking to accounts, owner commands, reputations, model catalogue and receipts. */
import type { OwnerCommandRefusal } from '@inference/protocol';

export type CommandOutcome = 'done' | 'refused' | 'unsupported' | 'not_linked' | 'timeout' | 'disconnected' | 'busy';
/** Reason for which a provider refused a command. `other`: a reason that this version does not know. */
export type CommandRefusal = OwnerCommandRefusal | 'other';

export interface ProviderTables {
  /** One device authorization (RFC 8628) each: an agent shows a code, which the owner approves in the console to link the machine. */
  device_codes: {
    /** Hexadecimal SHA-256 of the device code. */
    hash: string;
    /** Code that the owner enters, without the dash. */
    user_code: string;
    machine_name: string;
    chip_name: string | null;
    /** IP address of the agent's request. */
    address: string | null;
    requested_at: number;
    expires_at: number;
    /** Minimum pause between two polls of the agent; `slow_down` lengthens it. */
    interval_ms: number;
    polled_at: number | null;
    /** Account that approved or denied the code. */
    account_id: string | null;
    approved_at: number | null;
    denied_at: number | null;
    token_hash: string | null;
  };
  /** Tokens with which agents prove the account that their machine is linked to. */
  machine_tokens: {
    /** Hexadecimal SHA-256 of the token. */
    hash: string;
    account_id: string;
    machine_name: string;
    /** Provider that presented the token first. No other provider may use the token. */
    provider_id: string | null;
    created_at: number;
    bound_at: number | null;
    revoked_at: number | null;
  };
  /** Commands that owners sent from the console. Only the newest of an account are stored. */
  owner_commands: {
    id: string;
    account_id: string;
    provider_id: string;
    /** User who sent the command. */
    actor_id: string;
    at: number;
    /** JSON of an `OwnerAction`. */
    action: string;
    outcome: CommandOutcome | null;
    refusal: CommandRefusal | null;
  };
  /** Ledger accounts for a provider's earnings between two owners. Before the first owner, the account `provider:<id>` has no row here. */
  unclaimed_accounts: { account: string; provider_id: string; since: number; claimed_by: string | null };
  provider_reputations: {
    provider_id: string;
    /** Decaying sum of past failures, as of the time `at`. */
    weight: number;
    /** Number of consecutive slow answers. */
    late: number;
    at: number;
    /** `cooldown` or `quarantine`. Null: unrestricted; the other `restraint_…` columns are then null, too. */
    restraint_kind: string | null;
    restraint_reason: string | null;
    restraint_detail: string | null;
    restraint_since: number | null;
    restraint_until: number | null;
    cooldowns: number;
    quarantines: number;
    cooldowns_at: number;
    quarantines_at: number;
    /** Time of the write, in milliseconds since 1970. */
    written_at: number;
  };
  catalogue_models: {
    id: string;
    display_name: string;
    quantization: string;
    model_type: 'text' | 'embedding' | 'image';
    /** Memory that a provider needs for the model; null: unknown. */
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
