/** `sendLowBalanceAlerts` e-mails accounts whose balance has fallen below their threshold. */

import type { Mailer } from '../accounts/mailer.js';
import type { LowBalanceRepository } from '../database/accounts/low-balance-repository.js';
import { accountPage, sendAlertMails } from './alert-mails.js';
import { shortUsd } from './micro-usd.js';

/** Maximum e-mails per run. */
const MAX_MAILS = 200;

export interface LowBalanceAlertsOptions {
  readonly alerts: LowBalanceRepository;
  readonly mailer: Mailer;
  /** URL of the console page on which credits are added. */
  readonly balancePage: string;
}

export async function sendLowBalanceAlerts({ alerts, mailer, balancePage }: LowBalanceAlertsOptions): Promise<void> {
  // An account gets another alert only after its balance has reached the threshold again.
  await alerts.rearm();
  await sendAlertMails({
    due: await alerts.due(MAX_MAILS),
    idOf: ({ accountId }) => accountId,
    send: ({ email, balance, threshold, organisationId }) =>
      mailer.send({
        kind: 'low_balance',
        to: email,
        link: accountPage(balancePage, organisationId),
        balance: shortUsd(balance),
        threshold: shortUsd(threshold),
      }),
    mailed: ({ accountId }) => alerts.mailed(accountId),
  });
}
