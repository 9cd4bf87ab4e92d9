/** `sendAlertMails`: sends alerts about balances and budgets. An alert may have several recipients, such as owners of an organisation. */

/** After this many refused mails in a row, the mail service counts as down. Other mails wait for the next run. */
const MAX_REFUSED_IN_A_ROW = 5;

interface AlertMails<Alert> {
  /** One entry per mail. Entries of the same alert are neighbours. */
  readonly due: readonly Alert[];
  /** Common id of all entries of an alert. */
  idOf(alert: Alert): string;
  send(alert: Alert): Promise<void>;
  /** Called once per alert after its last mail, if the mail service accepted at least one. */
  mailed(alert: Alert): Promise<void>;
}

/** Sends all mails, then throws the first error if there was one. Alerts without an accepted mail remain due in the next run. */
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

/** Address of a console page with the organisation selected. Null: the personal account, which the console selects by default. */
export function accountPage(page: string, organisationId: string | null): string {
  return organisationId === null ? page : `${page}?account_id=${encodeURIComponent(organisationId)}`;
}
