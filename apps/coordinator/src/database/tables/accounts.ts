/** Accounts, their keys, and the tables of the sign-in library, which have their own types of dates and flags. */
export interface AccountTables {
  /** One row per customer, with the id of the user who signed up. */
  accounts: {
    id: string;
    name: string;
    created_at: number;
    admin_since: number | null;
    suspended_at: number | null;
    /** Set when the account is closed. The row stays, because postings refer to it. */
    deleted_at: number | null;
  };
  api_keys: {
    id: string;
    account_id: string;
    kind: ApiKeyKind;
    /** Lowercase hexadecimal SHA-256 of the whole key, which is never stored. */
    hash: string;
    /** First characters of the key, for display. */
    prefix: string;
    name: string;
    created_at: number;
    last_used_at: number | null;
    revoked_at: number | null;
    expires_at: number | null;
    spend_limit_micro_usd: number | null;
    /** Maximum spending per period; null: no budget, as are the columns below. */
    budget_micro_usd: number | null;
    budget_period: BudgetPeriod | null;
    budget_set_at: number | null;
    /** Newest e-mail about this budget: 80 or 100 percent, and its time. */
    budget_mailed_percent: number | null;
    budget_mailed_at: number | null;
    /** JSON array of model ids; null allows all. */
    models: string | null;
    /** `playground`: created by the console's playground; null: created by the owner. */
    made_for: 'playground' | null;
    /** Form of the signatures in streams; null: the default of the format. */
    signature_form: KeySignatureForm | null;
  };
  /** Columns that the queries of this program read; the library defines the rest. */
  auth_users: { id: string; name: string; email: string; email_verified: number | boolean; two_factor_enabled: number | boolean | null };
  auth_two_factors: { id: string; user_id: string };
  auth_passkeys: { id: string; user_id: string };
  auth_sessions: { id: string /** Hexadecimal SHA-256 of the token in the cookie. */; token: string; user_id: string };
  /** `identifier`: base64url SHA-256 of `reset-password:<token of a mailed link>`. */
  auth_verifications: { id: string; identifier: string; value: string };
  low_balance_alerts: {
    account_id: string;
    /** Micro-USD. */
    threshold: number;
    /** 0 after the e-mail, until the balance reaches the threshold again. */
    is_armed: number;
    mailed_at: number | null;
  };
  /** Single-use codes that link a provider to an account. */
  machine_codes: {
    /** Hexadecimal SHA-256 of the code. */
    hash: string;
    account_id: string;
    created_at: number;
    expires_at: number;
    used_at: number | null;
  };
}

export type BudgetPeriod = 'day' | 'week' | 'month';

export type KeySignatureForm = 'event' | 'comment';

/** `api` keys use the inference endpoints, `admin` keys the operator's. Neither opens the other's. */
export type ApiKeyKind = 'api' | 'admin';
