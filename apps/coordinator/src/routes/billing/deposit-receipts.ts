/**
 * Routes under `/console/v1`: data of a deposit receipt for bookkeeping (`/deposits/{deposit_id}`), and the account's address for receipts
 * (`/billing-details`).
 */
import {
  type ConsoleBillingDetails,
  ConsoleBillingDetailsSchema,
  ConsoleDepositReceiptSchema,
  RequestError,
  UpdateBillingDetailsSchema,
} from '@inference/formats';
import type { BillingDetails, BillingDetailsRepository } from '../../database/accounts/billing-details-repository.js';
import type { PaymentRepository } from '../../database/payment-repository.js';
import type { ConsoleApi } from '../plugins/console-api.js';
import { depositBody } from './console-billing.js';

interface ReceiptRoutes {
  readonly payments: PaymentRepository;
  readonly billingDetails: BillingDetailsRepository;
  /** Issuer of the receipts, from the settings `OPERATOR_…`. Members without a setting are null. */
  readonly operator: BillingDetails;
}

export function addDepositReceipts(api: ConsoleApi, { payments, billingDetails, operator }: ReceiptRoutes): void {
  api.add(
    { method: 'GET', path: '/deposits/:deposit_id', response: ConsoleDepositReceiptSchema },
    async ({ caller, organisation, params }) => {
      const accountId = caller.account.id;
      const order = await payments.findOrder(params.deposit_id ?? '');
      if (order === null || order.accountId !== accountId) {
        throw new RequestError('not_found', 'deposit_id', 'This account has no deposit with this id.');
      }
      return {
        deposit: depositBody(order),
        currency: 'usd' as const,
        operator: detailsBody(operator),
        account: { name: organisation === null ? caller.name : caller.account.name, email: caller.email },
        billing_details: detailsBody(await billingDetails.find(accountId)),
      };
    },
  );

  const path = '/billing-details';
  api.add({ method: 'GET', path, response: ConsoleBillingDetailsSchema }, async ({ caller }) =>
    detailsBody(await billingDetails.find(caller.account.id)),
  );
  api.add({ method: 'PUT', path, body: UpdateBillingDetailsSchema, response: ConsoleBillingDetailsSchema }, async ({ caller, body }) => {
    const details = { name: body.name, address: body.address, taxId: body.tax_id };
    await billingDetails.set(caller.account.id, details);
    return detailsBody(details);
  });
}

function detailsBody({ name, address, taxId }: BillingDetails): ConsoleBillingDetails {
  return { name, address, tax_id: taxId };
}
