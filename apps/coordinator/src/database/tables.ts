/**
 * The tables, as the queries see them: one file per area, composed here. Times are integer milliseconds and flags are
 * nullable times, so that the same queries run on SQLite and on PostgreSQL. No table has a column for a prompt, an output
 * or anything derived from one.
 */
import type { Kysely } from 'kysely';
import type { AccountTables } from './tables/accounts.js';
import type { CatalogueTables } from './tables/catalogue.js';
import type { DeviceTables } from './tables/devices.js';
import type { LedgerTables } from './tables/ledger.js';
import type { MachineTables } from './tables/machines.js';
import type { OperationTables } from './tables/operations.js';
import type { PaymentTables } from './tables/payments.js';
import type { ReceiptTables } from './tables/receipts.js';
import type { ReputationTables } from './tables/reputations.js';
import type { SecretTables } from './tables/secrets.js';

export type { ApiKeyKind, KeySignatureForm } from './tables/accounts.js';

export interface Tables
  extends AccountTables,
    ReceiptTables,
    LedgerTables,
    PaymentTables,
    SecretTables,
    DeviceTables,
    CatalogueTables,
    ReputationTables,
    MachineTables,
    OperationTables {}

export type Database = Kysely<Tables>;
