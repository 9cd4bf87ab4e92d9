/** Data inventory (`StoredTable`): tables of people, sign-in, organisations and API keys. */
import { sql } from 'kysely';
import { ofAccount, ofEmail, type StoredTable } from './stored-table.js';

const WHILE_ACCOUNT = 'while the account exists';
const ERASED = 'removed';

export const ACCOUNT_DATA = {
  auth_users: {
    about: 'The person who signed up: name, e-mail address and picture address, for sign-in, mails and the console.',
    columns: { identity: 'name email image', activity: 'id email_verified created_at updated_at two_factor_enabled' },
    retention: WHILE_ACCOUNT,
    exported: { rows: ofAccount('id'), key: ['id'] },
    afterDeletion: ERASED,
    erasures: [{ rows: ofAccount('id') }],
  },
  auth_credentials: {
    about: 'The password, as a scrypt hash. The token columns belong to the sign-in library and are empty.',
    columns: {
      secret: 'password access_token refresh_token id_token',
      activity: 'id account_id provider_id user_id access_token_expires_at refresh_token_expires_at scope created_at updated_at',
    },
    retention: WHILE_ACCOUNT,
    exported: { rows: ofAccount('user_id'), key: ['id'] },
    afterDeletion: ERASED,
    erasures: [{ rows: ofAccount('user_id') }],
  },
  auth_sessions: {
    about: 'Browsers that are signed in, with network address and browser name, so that people recognise a stranger and sign them out.',
    columns: { identity: 'ip_address user_agent', secret: 'token', activity: 'id user_id expires_at created_at updated_at' },
    retention: '14 days after the last use, at most 100 per person; address and browser name: `RETENTION_SESSION_ADDRESS_DAYS`',
    exported: { rows: ofAccount('user_id'), key: ['id'] },
    afterDeletion: ERASED,
    erasures: [{ rows: ofAccount('user_id') }],
  },
  auth_passkeys: {
    about: 'Passkeys: the public half, a name, and when it was used. The private half never leaves the person’s device.',
    columns: {
      identity: 'name',
      activity: 'id user_id public_key credential_id counter device_type backed_up transports created_at aaguid last_used_at',
    },
    retention: 'until removed by the person',
    exported: { rows: ofAccount('user_id'), key: ['id'] },
    afterDeletion: ERASED,
    erasures: [{ rows: ofAccount('user_id') }],
  },
  auth_two_factors: {
    about: 'The secret of an authenticator app and the backup codes, both encrypted, and failed attempts.',
    columns: { secret: 'secret backup_codes', activity: 'id user_id verified failed_verification_count locked_until last_used_step' },
    retention: 'until two-factor authentication is turned off',
    exported: { rows: ofAccount('user_id'), key: ['id'] },
    afterDeletion: ERASED,
    erasures: [{ rows: ofAccount('user_id') }],
  },
  auth_verifications: {
    about: 'Password reset links, started passkey and two-factor steps, and browsers that skip the second step.',
    columns: { secret: 'identifier', activity: 'id value expires_at created_at updated_at' },
    retention: 'until used or expired: an hour, or 30 days for such browsers',
    exported: 'short-lived secrets of sign-in',
    afterDeletion: ERASED,
    erasures: [{ rows: ofAccount('value') }],
  },
  accounts: {
    about: 'Accounts of people and organisations, to which everything else refers by a random id.',
    columns: { identity: 'name', activity: 'id created_at admin_since suspended_at deleted_at' },
    retention: WHILE_ACCOUNT,
    exported: { rows: ofAccount('id'), key: ['id'] },
    afterDeletion: 'name emptied; the random id and the times stay, because the books refer to them',
    erasures: [{ rows: ofAccount('id'), set: { name: '' } }],
  },
  organisations: {
    about: 'Marks the accounts of organisations. Limits how many a person creates.',
    columns: { activity: 'account_id created_by created_at' },
    retention: 'unlimited',
    exported: {
      rows: (id) =>
        sql<boolean>`(account_id = ${id} or account_id in (select organisation_id from organisation_members where user_id = ${id}))`,
      key: ['account_id'],
    },
    afterDeletion: 'stays: random ids and a time',
  },
  organisation_members: {
    about: 'Members of organisations and their roles.',
    columns: { activity: 'organisation_id user_id role joined_at' },
    retention: 'while the person is a member',
    exported: {
      rows: (id) => sql<boolean>`(organisation_id = ${id} or user_id = ${id})`,
      key: ['organisation_id', 'user_id'],
      added: {
        organisation_name: sql`(select name from accounts where accounts.id = organisation_id)`,
        member_name: sql`(select name from auth_users where auth_users.id = user_id)`,
        member_email: sql`(select email from auth_users where auth_users.id = user_id)`,
      },
    },
    afterDeletion: ERASED,
    erasures: [{ rows: ofAccount('organisation_id') }, { rows: ofAccount('user_id') }],
  },
  organisation_invitations: {
    about: 'Invitations to organisations by e-mail address.',
    columns: { identity: 'email', secret: 'token_hash', activity: 'id organisation_id role invited_by sent_at sent_count expires_at' },
    retention: 'until accepted, revoked, or 30 days after their expiry',
    exported: {
      rows: (id) => sql<boolean>`(organisation_id = ${id} or ${ofEmail('email')(id)})`,
      key: ['id'],
    },
    afterDeletion: 'removed: those of a deleted organisation, and those to the confirmed address of a deleted person',
    erasures: [{ rows: ofAccount('organisation_id') }, { rows: ofEmail('email') }],
  },
  organisation_events: {
    about: 'Log of what members did in an organisation, for its owners and admins.',
    columns: { identity: 'subject', activity: 'id organisation_id at actor_id action role' },
    retention: 'the newest 1,000 per organisation; `RETENTION_ORGANISATION_LOG_DAYS`',
    exported: {
      rows: (id) => sql<boolean>`(organisation_id = ${id} or actor_id = ${id})`,
      key: ['id'],
      // In other rows, the subject is another person, on whom this member acted.
      restricted: { rows: (id) => sql<boolean>`(organisation_id = ${id} or ${ofEmail('subject')(id)})`, columns: ['subject'] },
    },
    afterDeletion:
      'removed with the organisation; of a deleted member, the random id stays as the actor and the confirmed e-mail address is erased',
    erasures: [{ rows: ofAccount('organisation_id') }, { rows: ofEmail('subject'), set: { subject: null } }],
  },
  api_keys: {
    about: 'API keys: name, first characters, limits and last use. Of the key itself only the SHA-256 is stored.',
    columns: {
      identity: 'name prefix models',
      secret: 'hash',
      activity:
        'id account_id kind created_at last_used_at revoked_at expires_at spend_limit_micro_usd budget_micro_usd budget_period budget_set_at ' +
        'budget_mailed_percent budget_mailed_at made_for signature_form created_by',
    },
    retention: 'while the account exists, revoked ones too',
    exported: { rows: ofAccount('account_id'), key: ['id'] },
    afterDeletion: 'revoked; name, first characters and model list erased. The rest: `RETENTION_CLOSED_ACCOUNTS_DAYS`',
    erasures: [{ rows: ofAccount('account_id'), set: { name: '', prefix: '', models: null } }],
  },
  low_balance_alerts: {
    about: 'Balance below which the account gets an e-mail.',
    columns: { activity: 'account_id threshold is_armed mailed_at' },
    retention: 'until turned off',
    exported: { rows: ofAccount('account_id'), key: ['account_id'] },
    afterDeletion: ERASED,
    erasures: [{ rows: ofAccount('account_id') }],
  },
  billing_details: {
    about: 'Name, address and tax ID that the account wants on its receipts.',
    columns: { identity: 'name address tax_id', activity: 'account_id' },
    retention: 'until changed',
    exported: { rows: ofAccount('account_id'), key: ['account_id'] },
    afterDeletion: ERASED,
    erasures: [{ rows: ofAccount('account_id') }],
  },
} as const satisfies Readonly<Record<string, StoredTable>>;
