/** `billingRoutes` registers balance, usage, prices, earnings, deposits and withdrawals, for API keys, the console and operators. */
import type { FastifyPluginAsync } from 'fastify';
import type { Ledger } from '../../billing/ledger/ledger.js';
import type { Deposits } from '../../billing/payments/deposits.js';
import type { PaymentProcessor } from '../../billing/payments/payment-processor.js';
import type { Withdrawals } from '../../billing/payments/withdrawals.js';
import type { PriceRepository } from '../../billing/prices/price-repository.js';
import type { NetworkViews } from '../../cluster/views.js';
import type { BillingDetails, BillingDetailsRepository } from '../../database/accounts/billing-details-repository.js';
import type { FailedRequestRepository } from '../../database/failed-request-repository.js';
import type { PaymentRepository } from '../../database/payment-repository.js';
import type { Database } from '../../database/tables.js';
import type { Log } from '../../log.js';
import type { ProviderRegistry } from '../../providers/provider-registry.js';
import { ConsoleApi } from '../plugins/console-api.js';
import { addMoneyRoutes } from './console-billing.js';
import { addRequestRoutes } from './console-requests.js';
import { addUsageRoutes } from './console-usage.js';
import { addDepositReceipts } from './deposit-receipts.js';
import { addEarningsConcentration } from './earnings-concentration.js';
import { addPayments } from './payments.js';
import { addPrices } from './prices.js';
import { addProviderEarnings } from './provider-earnings.js';
import { addPaymentWebhook } from './stripe-webhook.js';

interface BillingRoutesDeps {
  readonly database: Database;
  readonly ledger: Ledger;
  readonly prices: PriceRepository;
  readonly payments: PaymentRepository;
  readonly billingDetails: BillingDetailsRepository;
  /** Issuer of deposit receipts. Members without a setting are null. */
  readonly operator: BillingDetails;
  readonly deposits: Deposits;
  readonly withdrawals: Withdrawals;
  readonly processor: PaymentProcessor | null;
  readonly onPaymentEvent: (outcome: string) => void;
  readonly providers: ProviderRegistry;
  readonly views: NetworkViews;
  readonly failedRequests: FailedRequestRepository;
  /** Whether accounts can credit themselves without payment. */
  readonly development: boolean;
  readonly log: Log;
  readonly now: () => number;
}

export const billingRoutes: FastifyPluginAsync<BillingRoutesDeps> = async (server, deps) => {
  const { database, ledger, prices, payments, deposits, withdrawals, processor, providers, views, failedRequests, development, log, now } =
    deps;
  addPayments(server, { database, ledger });
  addPrices(server, { prices, registry: providers, views, now });
  addEarningsConcentration(server, { database, now });
  addProviderEarnings(server, { database, ledger, now });
  const api = new ConsoleApi(server);
  addMoneyRoutes(api, { database, ledger, payments, deposits, withdrawals, processor, development, now, log });
  addDepositReceipts(api, deps);
  addUsageRoutes(api, { database, now });
  addRequestRoutes(api, { database, failedRequests, now });
  if (processor !== null) addPaymentWebhook(server, { processor, deposits, log, onOutcome: deps.onPaymentEvent });
};
