/**
 * `Tables`: types of all database tables, for Kysely. No column contains a prompt, an output, or a value derived from either.
 *
 * On both databases, times are integers in milliseconds since 1970. Most flags are nullable times, such as `revoked_at`.
 */
import type { Kysely } from 'kysely';
import type { AccountTables } from './tables/accounts.js';
import type { DeviceTables } from './tables/devices.js';
import type { LedgerTables } from './tables/ledger.js';
import type { OperationTables } from './tables/operations.js';
import type { PaymentTables } from './tables/payments.js';
import type { ProviderTables } from './tables/providers.js';
import type { ReleaseTables } from './tables/releases.js';
import type { TransparencyLogTables } from './tables/transparency-log.js';

export type { ApiKeyKind, BudgetPeriod, KeySignatureForm, OrganisationAction } from './tables/accounts.js';

export interface Tables
  extends AccountTables,
    LedgerTables,
    PaymentTables,
    ProviderTables,
    DeviceTables,
    OperationTables,
    ReleaseTables,
    TransparencyLogTables {}

export type Database = Kysely<Tables>;
