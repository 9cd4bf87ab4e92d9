/**
 * `MIGRATIONS`: all schema migrations, one per file, applied in order of name on SQLite and PostgreSQL.
 *
 * The statements of a released migration are never changed.
 */
import { accountsAndKeys } from './0001-accounts-and-keys.js';
import { receipts } from './0002-receipts.js';
import { ledger } from './0003-ledger.js';
import { totals } from './0004-totals.js';
import { secrets } from './0008-secrets.js';
import { accounts } from './0010-accounts.js';
import { payments } from './0011-payments.js';
import { earningsByMachine } from './0012-earnings-by-machine.js';
import { devices } from './0020-devices.js';
import { catalogue } from './0032-catalogue.js';
import { reputations } from './0033-reputations.js';
import { machineLinks } from './0034-machine-links.js';
import { operations } from './0035-operations.js';
import { playgroundKeys } from './0039-playground-keys.js';
import { reputationsWrittenAt } from './0040-reputations-written-at.js';
import { hashedSignInTokens } from './0045-hashed-sign-in-tokens.js';
import { maturingEarnings } from './0047-maturing-earnings.js';
import { keySignatureForm } from './0049-key-signature-form.js';
import { unfoldedJobs } from './0050-unfolded-jobs.js';
import { creditLeases } from './0051-credit-leases.js';
import { sharedCounters } from './0055-shared-counters.js';
import { webhookDigests } from './0056-webhook-digests.js';
import { leaseRecalls } from './0060-lease-recalls.js';
import { transparencyLog } from './0061-transparency-log.js';
import { e2eKeysets } from './0062-e2e-keysets.js';
import { sealedNonces } from './0063-sealed-nonces.js';
import { e2eKeysetClaims } from './0064-e2e-keyset-claims.js';
import { sealedNonceJobs } from './0065-sealed-nonce-jobs.js';
import { cachedPrices } from './0070-cached-prices.js';
import { modelAvailability } from './0071-model-availability.js';
import { failedRequests } from './0072-failed-requests.js';
import { lowBalanceAlerts } from './0073-low-balance-alerts.js';
import { twoFactor } from './0074-two-factor.js';
import { passkeys } from './0075-passkeys.js';
import { keyBudgets } from './0076-key-budgets.js';
import { billingDetails } from './0077-billing-details.js';
import { statusPage } from './0078-status-page.js';
import { organisations } from './0079-organisations.js';
import { organisationLog } from './0080-organisation-log.js';
import { dataProtection } from './0081-data-protection.js';
import { healthHistory } from './0083-health-history.js';
import { rollouts } from './0084-rollouts.js';
import { rolloutPolicy } from './0085-rollout-policy.js';
import { rolloutOwners } from './0086-rollout-owners.js';
import { ownerCommands } from './0087-owner-commands.js';
import { incidentChanges } from './0088-incident-changes.js';

export const MIGRATIONS = {
  '0001_accounts_and_keys': accountsAndKeys,
  '0002_receipts': receipts,
  '0003_ledger': ledger,
  '0004_totals': totals,
  '0008_secrets': secrets,
  '0010_accounts': accounts,
  '0011_payments': payments,
  '0012_earnings_by_machine': earningsByMachine,
  '0020_devices': devices,
  '0032_catalogue': catalogue,
  '0033_reputations': reputations,
  '0034_machine_links': machineLinks,
  '0035_operations': operations,
  '0039_playground_keys': playgroundKeys,
  '0040_reputations_written_at': reputationsWrittenAt,
  '0045_hashed_sign_in_tokens': hashedSignInTokens,
  '0047_maturing_earnings': maturingEarnings,
  '0049_key_signature_form': keySignatureForm,
  '0050_unfolded_jobs': unfoldedJobs,
  '0051_credit_leases': creditLeases,
  '0055_shared_counters': sharedCounters,
  '0056_webhook_digests': webhookDigests,
  '0060_lease_recalls': leaseRecalls,
  '0061_transparency_log': transparencyLog,
  '0062_e2e_keysets': e2eKeysets,
  '0063_sealed_nonces': sealedNonces,
  '0064_e2e_keyset_claims': e2eKeysetClaims,
  '0065_sealed_nonce_jobs': sealedNonceJobs,
  '0070_cached_prices': cachedPrices,
  '0071_model_availability': modelAvailability,
  '0072_failed_requests': failedRequests,
  '0073_low_balance_alerts': lowBalanceAlerts,
  '0074_two_factor': twoFactor,
  '0075_passkeys': passkeys,
  '0076_key_budgets': keyBudgets,
  '0077_billing_details': billingDetails,
  '0078_status_page': statusPage,
  '0079_organisations': organisations,
  '0080_organisation_log': organisationLog,
  '0081_data_protection': dataProtection,
  '0083_health_history': healthHistory,
  '0084_rollouts': rollouts,
  '0085_rollout_policy': rolloutPolicy,
  '0086_rollout_owners': rolloutOwners,
  '0087_owner_commands': ownerCommands,
  '0088_incident_changes': incidentChanges,
};
