/**
 * `describeMigration`: kind of a migration, and the oldest version of the coordinator that still works after it.
 *
 * During an upgrade and after a rollback, coordinators of two versions share a database (docs/upgrading.md). So each migration
 * states its effect on older versions.
 */
import { MIGRATIONS } from './all.js';

/**
 * - `expand` adds tables, indexes, and columns that are nullable or have a default. Older versions keep working.
 * - `data` adds the same, and writes only to the added tables and columns. Older versions keep working.
 * - `contract` removes or changes tables, columns or values that older versions read.
 */
export type MigrationDescription =
  | { readonly kind: 'expand' | 'data'; readonly effect: null; readonly oldestProgram: null }
  | {
      readonly kind: 'contract';
      /** Effect on older coordinators, for operators. */
      readonly effect: string;
      /** Oldest version that runs after the migration. */
      readonly oldestProgram: string;
    };

const EXPAND = { kind: 'expand', effect: null, oldestProgram: null } as const;
const DATA = { kind: 'data', effect: null, oldestProgram: null } as const;

function contract(oldestProgram: string, effect: string): MigrationDescription {
  return { kind: 'contract', effect, oldestProgram };
}

/** A missing entry is a compile error. `migrations.test.ts` compares each entry with the statements of its migration. */
const DESCRIPTIONS: Readonly<Record<keyof typeof MIGRATIONS, MigrationDescription>> = {
  '0001_accounts_and_keys': EXPAND,
  '0002_receipts': EXPAND,
  '0003_ledger': EXPAND,
  '0004_totals': DATA,
  '0008_secrets': EXPAND,
  '0010_accounts': EXPAND,
  '0011_payments': EXPAND,
  '0012_earnings_by_machine': EXPAND,
  '0020_devices': EXPAND,
  '0032_catalogue': EXPAND,
  '0033_reputations': EXPAND,
  '0034_machine_links': contract('0.1.0', 'drops the table auth_device_codes: earlier versions cannot link providers'),
  '0035_operations': EXPAND,
  '0039_playground_keys': EXPAND,
  '0040_reputations_written_at': EXPAND,
  '0045_hashed_sign_in_tokens': contract('0.1.0', 'hashes the tokens of sessions and mailed links: earlier versions end every session'),
  '0047_maturing_earnings': DATA,
  '0049_key_signature_form': EXPAND,
  '0050_unfolded_jobs': EXPAND,
  '0051_credit_leases': EXPAND,
  '0055_shared_counters': EXPAND,
  '0056_webhook_digests': EXPAND,
  '0060_lease_recalls': EXPAND,
  '0061_transparency_log': EXPAND,
  '0062_e2e_keysets': EXPAND,
  '0063_sealed_nonces': EXPAND,
  '0064_e2e_keyset_claims': EXPAND,
  '0065_sealed_nonce_jobs': EXPAND,
  '0070_cached_prices': EXPAND,
  '0071_model_availability': EXPAND,
  '0072_failed_requests': EXPAND,
  '0073_low_balance_alerts': EXPAND,
  '0074_two_factor': EXPAND,
  '0075_passkeys': EXPAND,
  '0076_key_budgets': DATA,
  '0077_billing_details': EXPAND,
  '0078_status_page': EXPAND,
  '0079_organisations': EXPAND,
  '0080_organisation_log': EXPAND,
  '0081_data_protection': EXPAND,
  '0083_health_history': EXPAND,
  '0084_rollouts': EXPAND,
  '0085_rollout_policy': EXPAND,
  '0086_rollout_owners': EXPAND,
  '0087_owner_commands': EXPAND,
  '0088_incident_changes': EXPAND,
};

/** Throws an Error for a name that is not a migration of this program. */
export function describeMigration(name: string): MigrationDescription {
  if (!isMigrationName(name)) throw new Error(`this program has no migration ${name}`);
  return DESCRIPTIONS[name];
}

function isMigrationName(name: string): name is keyof typeof MIGRATIONS {
  return Object.hasOwn(MIGRATIONS, name);
}
