/** Outgoing mail: to the operator's HTTP endpoint, or in development to the log. Without either, mail functions are refused. */

export interface Mail {
  readonly kind: 'reset_password' | 'verify_email';
  readonly to: string;
  /** Link that completes the action of the mail. Secret of the recipient. */
  readonly link: string;
}

export interface Mailer {
  /** Rejects if the mail was not accepted for delivery. */
  send(mail: Mail): Promise<void>;
}

const SEND_MS = 10_000;

const SUBJECTS: Readonly<Record<Mail['kind'], string>> = {
  reset_password: 'Choose a new password',
  verify_email: 'Confirm your e-mail address',
};

/** Logs links instead of sending mail. Development mode only: a reader of the log can take over the account. */
export function developmentMailer(logMail: (mail: Mail) => void): Mailer {
  return { send: async (mail) => logMail(mail) };
}

/** Body of a mail. Contains no text of the requester, who may be a stranger to the recipient. */
function textOf(subject: string, link: string): string {
  return `Hello,\n\n${subject}: ${link}\n\nIf you did not ask for this, ignore this mail.\n`;
}

/** Posts `{to, subject, text, kind, link}` as JSON to the operator's address, with an optional bearer token. */
export function httpMailer(options: { readonly url: string; readonly token: string | null }): Mailer {
  return {
    async send(mail) {
      const subject = SUBJECTS[mail.kind];
      const text = textOf(subject, mail.link);
      const answer = await fetch(options.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...(options.token === null ? {} : { authorization: `Bearer ${options.token}` }) },
        body: JSON.stringify({ to: mail.to, subject, text, kind: mail.kind, link: mail.link }),
        redirect: 'error',
        signal: AbortSignal.timeout(SEND_MS),
      });
      await answer.body?.cancel();
      if (!answer.ok) throw new Error(`the mail service answered ${answer.status}`);
    },
  };
}
