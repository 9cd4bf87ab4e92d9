/** `sendKeyBudgetAlerts` e-mails the account of an API key when 80 percent, and when 100 percent, of its budget are spent. */

import type { Mailer } from '../accounts/mailer.js';
import type { DueBudgetAlert, KeyBudgetRepository } from '../database/accounts/key-budget-repository.js';
import { accountPage, sendAlertMails } from './alert-mails.js';
import { shortUsd } from './micro-usd.js';

/** Maximum e-mails per run and budget period (day, week, month). */
const MAX_MAILS = 200;

export interface KeyBudgetAlertsOptions {
  readonly budgets: KeyBudgetRepository;
  readonly mailer: Mailer;
  /** URL of the console page on which budgets are changed. */
  readonly keysPage: string;
}

export async function sendKeyBudgetAlerts({ budgets, mailer, keysPage }: KeyBudgetAlertsOptions): Promise<void> {
  const send = (alert: DueBudgetAlert): Promise<void> =>
    mailer.send({
      kind: alert.percent === 100 ? 'key_budget_used_up' : 'key_budget_low',
      to: alert.email,
      link: accountPage(keysPage, alert.organisationId),
      key: `${alert.keyName} (${alert.keyPrefix}…)`,
      budget: shortUsd(alert.budget),
      spent: shortUsd(alert.spent),
      period: alert.period,
      resetsAt: new Date(alert.resetsAt).toISOString().slice(0, 10),
    });
  const due = await budgets.due(MAX_MAILS);
  await sendAlertMails({ due, idOf: ({ keyId }) => keyId, send, mailed: (alert) => budgets.mailed(alert) });
}
