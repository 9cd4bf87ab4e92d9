/**
 * `sendAlertMails` sends e-mails about low balances and budgets. An alert may have several recipients, such as the owners of an
 * organisation.
 */

/** Number of consecutive refused e-mails after which the mail service is considered down. The rest waits for the next run. */
const MAX_REFUSED_IN_A_ROW = 5;

interface AlertMails<Alert> {
  /** Due e-mails. E-mails of the same alert are adjacent. */
  readonly due: readonly Alert[];
  /** Id that all entries of an alert share. */
  idOf(alert: Alert): string;
  send(alert: Alert): Promise<void>;
  /** Called once per alert after its last e-mail, if the mail service accepted at least one. */
  mailed(alert: Alert): Promise<void>;
}

/** Sends e-mails until the service is down, then throws the first error, if any. Alerts without an accepted e-mail remain due. */
export async function sendAlertMails<Alert>({ due, idOf, send, mailed }: AlertMails<Alert>): Promise<void> {
  const errors: unknown[] = [];
  const accepted = new Set<string>();
  let refusedInARow = 0;
  for (const [index, alert] of due.entries()) {
    const id = idOf(alert);
    try {
      await send(alert);
      accepted.add(id);
      refusedInARow = 0;
    } catch (error) {
      errors.push(error);
      refusedInARow++;
    }
    const next = due[index + 1];
    const isDown = refusedInARow >= MAX_REFUSED_IN_A_ROW;
    const isLast = isDown || next === undefined || idOf(next) !== id;
    if (isLast && accepted.has(id)) await mailed(alert);
    if (isDown) break;
  }
  if (errors.length > 0) throw errors[0];
}

/** URL of a console page for an organisation, or for the personal account, which the console selects by default. */
export function accountPage(page: string, organisationId: string | null): string {
  return organisationId === null ? page : `${page}?account_id=${encodeURIComponent(organisationId)}`;
}
