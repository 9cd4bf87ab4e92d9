/** Sends an e-mail to owners of API keys that have spent 80 percent of their budget, and another once the budget is used up. */

import type { Mailer } from '../accounts/mailer.js';
import type { KeyBudgetRepository } from '../database/accounts/key-budget-repository.js';
import { shortUsd } from './micro-usd.js';

/** Maximum e-mails per run and kind of period. */
const MAX_MAILS = 200;

export interface KeyBudgetAlertsOptions {
  readonly budgets: KeyBudgetRepository;
  readonly mailer: Mailer;
  /** Console page on which budgets are changed. */
  readonly keysPage: string;
}

/** Rejects at the first e-mail that the mail service refuses: the rest waits for the next run. */
export async function sendKeyBudgetAlerts({ budgets, mailer, keysPage }: KeyBudgetAlertsOptions): Promise<void> {
  for (const alert of await budgets.due(MAX_MAILS)) {
    await mailer.send({
      kind: alert.percent === 100 ? 'key_budget_used_up' : 'key_budget_low',
      to: alert.email,
      link: keysPage,
      key: `${alert.keyName} (${alert.keyPrefix}…)`,
      budget: shortUsd(alert.budget),
      spent: shortUsd(alert.spent),
      period: alert.period,
      resetsAt: new Date(alert.resetsAt).toISOString().slice(0, 10),
    });
    await budgets.mailed(alert);
  }
}
