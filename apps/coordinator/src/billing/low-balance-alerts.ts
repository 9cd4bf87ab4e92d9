/** Sends an e-mail to accounts whose balance fell below the threshold that they set. */

import type { Mailer } from '../accounts/mailer.js';
import type { LowBalanceRepository } from '../database/accounts/low-balance-repository.js';
import { shortUsd } from './micro-usd.js';

/** Maximum e-mails per run. */
const MAX_MAILS = 200;

export interface LowBalanceAlertsOptions {
  readonly alerts: LowBalanceRepository;
  readonly mailer: Mailer;
  /** Console page on which credits are added. */
  readonly balancePage: string;
}

/** Rejects at the first e-mail that the mail service refuses: the rest waits for the next run. */
export async function sendLowBalanceAlerts({ alerts, mailer, balancePage }: LowBalanceAlertsOptions): Promise<void> {
  await alerts.rearm();
  for (const { accountId, email, threshold, balance } of await alerts.due(MAX_MAILS)) {
    const amounts = { balance: shortUsd(balance), threshold: shortUsd(threshold) };
    await mailer.send({ kind: 'low_balance', to: email, link: balancePage, ...amounts });
    await alerts.mailed(accountId);
  }
}
