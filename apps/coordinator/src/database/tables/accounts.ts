/**
 * Accounts, their keys, and the tables of the sign-in library. The library's own tables keep its kinds of columns (dates and
 * flags as it writes them); everything of ours is integer milliseconds, and a flag is the time at which it was set.
 */
export interface AccountTables {
  /** One per customer; the id is that of the user who signed up. */
  accounts: {
    id: string;
    name: string;
    created_at: number;
    admin_since: number | null;
    suspended_at: number | null;
    /** Set for good; the row stays, because postings refer to it. */
    deleted_at: number | null;
  };
  api_keys: {
    id: string;
    account_id: string;
    kind: ApiKeyKind;
    /** Lowercase hexadecimal SHA-256 of the whole key. The key itself is never stored. */
    hash: string;
    /** First characters of the key, for people to recognise it by. */
    prefix: string;
    name: string;
    created_at: number;
    last_used_at: number | null;
    revoked_at: number | null;
    expires_at: number | null;
    spend_limit_micro_usd: number | null;
    /** JSON array of model ids; null allows all. */
    models: string | null;
    /** Who made it for what: the console's playground, or null for a key that its owner asked for. */
    made_for: 'playground' | null;
    /** How streams carry their signatures; null: as the format does by itself. */
    signature_form: KeySignatureForm | null;
  };
  /** Only what our own queries read; the library knows the rest. */
  auth_users: { id: string; name: string; email: string; email_verified: number | boolean };
  auth_sessions: { id: string /** Hexadecimal SHA-256 of the token in the cookie. */; token: string; user_id: string };
  /** `identifier`: base64url SHA-256 of `reset-password:<token of a mailed link>`. */
  auth_verifications: { id: string; identifier: string; value: string };
  /** Single-use codes with which a machine, signed in by its owner, shows the account it earns for. */
  machine_codes: {
    /** Hexadecimal SHA-256 of the code. */
    hash: string;
    account_id: string;
    created_at: number;
    expires_at: number;
    used_at: number | null;
  };
}

export type KeySignatureForm = 'event' | 'comment';

/** `api` keys use the inference endpoints, `admin` keys the operator's. Neither opens the other's. */
export type ApiKeyKind = 'api' | 'admin';
