/** Types of the tables of accounts, API keys and organisations, and of better-auth's tables, which have other date and flag types. */
import type { OrganisationRole } from '../accounts/organisation-roles.js';

export interface AccountTables {
  /** One row per user, with the user's id, and one row per organisation. */
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
    /** Maximum spending per period; null: no budget. The following four columns are then null, too. */
    budget_micro_usd: number | null;
    budget_period: BudgetPeriod | null;
    budget_set_at: number | null;
    /** Percentage (80 or 100) of the last e-mail about this budget, and its time. */
    budget_mailed_percent: number | null;
    budget_mailed_at: number | null;
    /** JSON array of allowed model ids; null: all. */
    models: string | null;
    /** `playground`: created by the console's playground; null: created by the owner. */
    made_for: 'playground' | null;
    /** Form of response signatures in streams; null: the default of the API format. */
    signature_form: KeySignatureForm | null;
    /** User who created the key in the console; null for older keys. */
    created_by: string | null;
  };
  /** Marks accounts of organisations, which have no user. Like the row in `accounts`, the row stays after deletion. */
  organisations: { account_id: string; created_by: string; created_at: number };
  organisation_members: { organisation_id: string; user_id: string; role: OrganisationRole; joined_at: number };
  /** Open invitations. Accepted and revoked ones are removed. */
  organisation_invitations: {
    id: string;
    organisation_id: string;
    /** Lower case. */
    email: string;
    role: OrganisationRole;
    /** Hexadecimal SHA-256 of the token in the mailed link. */
    token_hash: string;
    invited_by: string;
    sent_at: number;
    sent_count: number;
    expires_at: number;
  };
  /** Log of members' actions. Only the newest are stored. */
  organisation_events: {
    id: string;
    organisation_id: string;
    at: number;
    actor_id: string;
    action: OrganisationAction;
    subject: string | null;
    role: OrganisationRole | null;
  };
  /** The `auth_…` tables belong to the library better-auth. Only the columns that this program queries are listed. */
  auth_users: { id: string; name: string; email: string; email_verified: number | boolean; two_factor_enabled: number | boolean | null };
  auth_two_factors: { id: string; user_id: string };
  auth_passkeys: { id: string; user_id: string };
  /** `token`: hexadecimal SHA-256 of the token in the cookie. */
  auth_sessions: { id: string; token: string; user_id: string };
  /** `identifier`: base64url SHA-256 of `reset-password:<token of a mailed link>`. */
  auth_verifications: { id: string; identifier: string; value: string };
  low_balance_alerts: {
    account_id: string;
    /** Micro-USD. */
    threshold: number;
    /** 1: the e-mail is sent when the balance is below the threshold. 0 after the e-mail, until the balance reaches it again. */
    is_armed: number;
    mailed_at: number | null;
  };
  /** No longer used, because providers are linked by the device authorization grant (RFC 8628). */
  machine_codes: { hash: string; account_id: string; created_at: number; expires_at: number; used_at: number | null };
}

export type BudgetPeriod = 'day' | 'week' | 'month';

export type OrganisationAction =
  | 'organisation.created'
  | 'organisation.renamed'
  | 'member.joined'
  | 'member.role_changed'
  | 'member.removed'
  | 'member.left'
  | 'invitation.sent'
  | 'invitation.resent'
  | 'invitation.revoked'
  | 'key.created'
  | 'key.changed'
  | 'key.revoked'
  | 'deposit.started'
  | 'billing_details.changed'
  | 'alert.changed'
  | 'withdrawal.requested'
  | 'payout_account.opened'
  | 'machine.linked'
  | 'machine.link_denied'
  | 'machine.renamed'
  | 'machine.unlinked'
  | 'machine.controlled';

export type KeySignatureForm = 'event' | 'comment';

/** `api` keys are accepted by the inference endpoints only, `admin` keys by the operator's endpoints only. */
export type ApiKeyKind = 'api' | 'admin';
