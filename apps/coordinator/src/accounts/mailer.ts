/**
 * The way mail leaves the coordinator. Development shows links in the log; in production a program of the operator's takes
 * each mail over HTTP and delivers it however they like. Without either, what needs mail is refused.
 */

export interface Mail {
  readonly kind: 'reset_password' | 'verify_email';
  readonly to: string;
  /** Opens the page that finishes what the mail is about. It is a secret of the recipient. */
  readonly link: string;
}

export interface Mailer {
  /** Rejects when the mail could not be handed over. */
  send(mail: Mail): Promise<void>;
}

const SEND_MS = 10_000;

const SUBJECTS: Readonly<Record<Mail['kind'], string>> = {
  reset_password: 'Choose a new password',
  verify_email: 'Confirm your e-mail address',
};

/** Says the link instead of sending it. For development mode only: whoever reads it can take the account over. */
export function developmentMailer(say: (mail: Mail) => void): Mailer {
  return { send: async (mail) => say(mail) };
}

/**
 * Body of a mail. The requester may be a stranger to the recipient, so that the body holds no name or other text of the requester's.
 */
function textOf(subject: string, link: string): string {
  return `Hello,\n\n${subject}: ${link}\n\nIf you did not ask for this, ignore this mail.\n`;
}

/** Posts `{to, subject, text, kind, link}` as JSON to an address of the operator's, with a bearer token if there is one. */
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
