/** `readRetention`: settings `RETENTION_…_DAYS`, the ages at which stored data are deleted. 0 disables deletion. */
import { type Environment, integer } from './environment.js';

export const MAX_RETENTION_DAYS = 36_500;

/** Settings with their defaults in days. docs/data-protection.md lists them in this order. */
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

/** Ages in days; null: never deleted. Throws StartupError that names an invalid setting. */
export function readRetention(env: Environment) {
  const days = (name: keyof typeof RETENTION_DEFAULTS): number | null =>
    integer(env, name, RETENTION_DEFAULTS[name], 0, MAX_RETENTION_DAYS) || null;
  return {
    /** IP address and browser name of a session; the age starts at the sign-in. */
    sessionAddressDays: days('RETENTION_SESSION_ADDRESS_DAYS'),
    failedRequestDays: days('RETENTION_FAILED_REQUESTS_DAYS'),
    receiptDays: days('RETENTION_RECEIPTS_DAYS'),
    organisationLogDays: days('RETENTION_ORGANISATION_LOG_DAYS'),
    auditLogDays: days('RETENTION_AUDIT_LOG_DAYS'),
    /** Device evidence and last state of providers that are linked to an account; the age starts at their last report. */
    machineDays: days('RETENTION_MACHINES_DAYS'),
    /** As `machineDays`, for providers without an account. */
    unlinkedMachineDays: days('RETENTION_UNLINKED_MACHINES_DAYS'),
    /** Payment processor ids and API keys of closed accounts. */
    closedAccountDays: days('RETENTION_CLOSED_ACCOUNTS_DAYS'),
  };
}
