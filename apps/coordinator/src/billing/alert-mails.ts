/** Sends e-mails about low balances and spent budgets. One alert may go to several people, such as the owners of an organisation. */
import type { Mailer } from '../accounts/mailer.js';
import type { DueBudgetAlert, KeyBudgetRepository } from '../database/accounts/key-budget-repository.js';
import type { LowBalanceRepository } from '../database/accounts/low-balance-repository.js';
import { shortUsd } from './micro-usd.js';

/** Maximum e-mails of each kind per run. */
const MAX_MAILS = 200;
/** Number of consecutive failed e-mails after which the mail service is considered down. The rest waits for the next run. */
const MAX_FAILED_IN_A_ROW = 5;

interface LowBalanceAlertsOptions {
  readonly alerts: LowBalanceRepository;
  readonly mailer: Mailer;
  /** URL of the console page on which credits are added. */
  readonly balancePage: string;
}

/** E-mails accounts whose balance has fallen below the threshold that they set. */
export async function sendLowBalanceAlerts({ alerts, mailer, balancePage }: LowBalanceAlertsOptions): Promise<void> {
  // Accounts whose balance has reached the threshold again may get another alert later.
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

interface KeyBudgetAlertsOptions {
  readonly budgets: KeyBudgetRepository;
  readonly mailer: Mailer;
  /** URL of the console page on which budgets are changed. */
  readonly keysPage: string;
}

/** E-mails the account of an API key when 80 percent, and when 100 percent, of its budget are spent. */
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

interface AlertMails<Alert> {
  /** Due e-mails. E-mails of the same alert are adjacent. */
  readonly due: readonly Alert[];
  idOf(alert: Alert): string;
  send(alert: Alert): Promise<void>;
  /** Called once per alert after its last e-mail, if the mail service accepted at least one. */
  mailed(alert: Alert): Promise<void>;
}

/** Sends e-mails, until the service seems down. Then rejects with the first error, if any. Alerts without an accepted e-mail remain due. */
export async function sendAlertMails<Alert>({ due, idOf, send, mailed }: AlertMails<Alert>): Promise<void> {
  const errors: unknown[] = [];
  const accepted = new Set<string>();
  let failedInARow = 0;
  for (const [index, alert] of due.entries()) {
    const id = idOf(alert);
    try {
      await send(alert);
      accepted.add(id);
      failedInARow = 0;
    } catch (error) {
      errors.push(error);
      failedInARow++;
    }
    const next = due[index + 1];
    const isDown = failedInARow >= MAX_FAILED_IN_A_ROW;
    const isLast = isDown || next === undefined || idOf(next) !== id;
    if (isLast && accepted.has(id)) await mailed(alert);
    if (isDown) break;
  }
  if (errors.length > 0) throw errors[0];
}

/** URL of a console page for an organisation, or for the personal account, which the console selects by default. */
function accountPage(page: string, organisationId: string | null): string {
  return organisationId === null ? page : `${page}?account_id=${encodeURIComponent(organisationId)}`;
}
