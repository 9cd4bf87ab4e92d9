/** Sends the e-mails of alerts. An alert may have several recipients, such as the owners of an organisation. */

/** After this many refused mails in a row, the mail service is taken to be down: the rest waits for the next run. */
const MAX_REFUSED_IN_A_ROW = 5;

interface AlertMails<Alert> {
  /** Alerts, one per recipient; those of one alert are neighbours. */
  readonly due: readonly Alert[];
  idOf(alert: Alert): string;
  send(alert: Alert): Promise<void>;
  /** Called once per alert after its mails, if the mail service accepted one of them. */
  mailed(alert: Alert): Promise<void>;
}

/** Sends the mails. Then rejects with the first error: alerts without an accepted mail are due again in the next run. */
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

/** Link to a console page that selects the organisation; null: the personal account, which a new tab selects by default. */
export function accountPage(page: string, organisationId: string | null): string {
  return organisationId === null ? page : `${page}?account_id=${encodeURIComponent(organisationId)}`;
}
