/** Retention settings: maximum ages of stored rows in days. 0 sets no maximum. */
import { type Environment, integer } from './environment.js';

export const MAX_RETENTION_DAYS = 36_500;

/** Settings and their defaults in days, in the order of the document. */
export const RETENTION_DEFAULTS = {
  RETENTION_SESSION_ADDRESS_DAYS: 90,
  RETENTION_FAILED_REQUESTS_DAYS: 0,
  RETENTION_RECEIPTS_DAYS: 0,
  RETENTION_ORGANISATION_LOG_DAYS: 0,
  RETENTION_AUDIT_LOG_DAYS: 0,
  RETENTION_MACHINES_DAYS: 730,
  RETENTION_UNLINKED_MACHINES_DAYS: 30,
  RETENTION_CLOSED_ACCOUNTS_DAYS: 3650,
} as const;

/** Throws StartupError that names a bad setting. */
export function readRetention(env: Environment) {
  const days = (name: keyof typeof RETENTION_DEFAULTS): number | null =>
    integer(env, name, RETENTION_DEFAULTS[name], 0, MAX_RETENTION_DAYS) || null;
  return {
    /** Network address and browser name of sessions, from the sign-in on. */
    sessionAddressDays: days('RETENTION_SESSION_ADDRESS_DAYS'),
    failedRequestDays: days('RETENTION_FAILED_REQUESTS_DAYS'),
    receiptDays: days('RETENTION_RECEIPTS_DAYS'),
    organisationLogDays: days('RETENTION_ORGANISATION_LOG_DAYS'),
    auditLogDays: days('RETENTION_AUDIT_LOG_DAYS'),
    /** Device evidence and last state of linked machines, from their last report on. */
    machineDays: days('RETENTION_MACHINES_DAYS'),
    /** The same of machines without an account. */
    unlinkedMachineDays: days('RETENTION_UNLINKED_MACHINES_DAYS'),
    /** Ids at the payment processor, and API keys, of closed accounts. */
    closedAccountDays: days('RETENTION_CLOSED_ACCOUNTS_DAYS'),
  };
}
