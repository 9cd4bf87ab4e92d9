/**
 * E-mails to users: kinds, texts, and `Mailer`, which sends them through an HTTP service (here), by SMTP (smtp-mailer.ts), or in
 * development only writes them to the log.
 */

export type Mail = ActionMail | LowBalanceMail | KeyBudgetMail | NoticeMail;

interface ActionMail {
  readonly kind: 'reset_password' | 'verify_email' | 'invitation';
  readonly to: string;
  /** Link that completes the action. Contains a secret for the recipient only. */
  readonly link: string;
}

interface LowBalanceMail {
  readonly kind: 'low_balance';
  readonly to: string;
  /** Console page on which credits are added. */
  readonly link: string;
  /** Decimal US dollars. */
  readonly balance: string;
  readonly threshold: string;
}

interface KeyBudgetMail {
  readonly kind: 'key_budget_low' | 'key_budget_used_up';
  readonly to: string;
  /** Console page on which budgets are changed. */
  readonly link: string;
  /** Name and first characters of the key. */
  readonly key: string;
  /** Decimal US dollars. */
  readonly budget: string;
  readonly spent: string;
  readonly period: 'day' | 'week' | 'month';
  /** First day of the next period, as 2026-01-31. */
  readonly resetsAt: string;
}

interface NoticeMail {
  readonly kind: NoticeKind;
  readonly to: string;
  /** Account page of the console. */
  readonly link: string;
}

/** Changes of how a user signs in, of which a mail informs the user. */
export type NoticeKind =
  | 'password_changed'
  | 'two_factor_enabled'
  | 'two_factor_disabled'
  | 'two_factor_reset'
  | 'passkey_added'
  | 'passkey_removed';

export interface Mailer {
  /** Rejects if the mail was not accepted for delivery. */
  send(mail: Mail): Promise<void>;
}

const HTTP_TIMEOUT_MS = 10_000;

const SUBJECTS: Readonly<Record<Mail['kind'], string>> = {
  reset_password: 'Choose a new password',
  verify_email: 'Confirm your e-mail address',
  invitation: 'Invitation to an organisation',
  low_balance: 'Your balance is low',
  key_budget_low: 'An API key has spent 80% of its budget',
  key_budget_used_up: 'The budget of an API key is used up',
  password_changed: 'Your password was changed',
  two_factor_enabled: 'Two-factor authentication was enabled',
  two_factor_disabled: 'Two-factor authentication was disabled',
  two_factor_reset: 'An operator disabled two-factor authentication',
  passkey_added: 'A passkey was added',
  passkey_removed: 'A passkey was removed',
};

/** Wraps a mailer, and calls `onMail` after each mail. `failed`: the mailer rejected. */
export function observedMailer(mailer: Mailer, onMail: (kind: Mail['kind'], outcome: 'sent' | 'failed') => void): Mailer {
  return {
    async send(mail) {
      let outcome: 'sent' | 'failed' = 'failed';
      try {
        await mailer.send(mail);
        outcome = 'sent';
      } finally {
        onMail(mail.kind, outcome);
      }
    },
  };
}

/** Passes mails to `logMail` instead of sending them. For development mode only: a reader of the log can use the links. */
export function developmentMailer(logMail: (mail: Mail) => void): Mailer {
  return { send: async (mail) => logMail(mail) };
}

export function contentOf(mail: Mail): { readonly subject: string; readonly text: string } {
  return { subject: SUBJECTS[mail.kind], text: textOf(mail) };
}

/** Body of a mail. An invitation contains no text of the inviting person, such as the organisation's name, to prevent spam. */
function textOf(mail: Mail): string {
  const subject = SUBJECTS[mail.kind];
  const { link } = mail;
  if (mail.kind === 'low_balance') {
    const { balance, threshold } = mail;
    return `Hello,\n\nYour balance is $${balance}, below your alert at $${threshold}. Requests fail once it is used up.\n\nAdd credits or change the alert: ${link}\n`;
  }
  if (mail.kind === 'key_budget_low' || mail.kind === 'key_budget_used_up') {
    const effect = mail.kind === 'key_budget_low' ? 'Requests fail once it is used up' : 'Requests that it does not cover are refused';
    return `Hello,\n\nThe API key ${mail.key} has spent $${mail.spent} of its budget of $${mail.budget} per ${mail.period}. ${effect}; it resets on ${mail.resetsAt} at 00:00 UTC.\n\nChange the budget: ${link}\n`;
  }
  if (mail.kind === 'invitation') {
    return `Hello,\n\nA member of an organisation invites you to join it. See who invites you, and accept: ${link}\n\nThe link works once, with this e-mail address, for seven days. If you did not expect this, ignore this mail.\n`;
  }
  if (mail.kind === 'password_changed') {
    return `Hello,\n\n${subject}. Browsers that you trusted ask for the second step again. Passkeys still sign in: review them at ${link}\n\nIf this was not you, choose a new password with “Forgot your password?” on the sign-in page, and remove passkeys that you do not know.\n`;
  }
  if (mail.kind !== 'reset_password' && mail.kind !== 'verify_email') {
    return `Hello,\n\n${subject} for your account.\n\nIf this was not you, change your password and check your sign-in settings: ${link}\n`;
  }
  return `Hello,\n\n${subject}: ${link}\n\nIf you did not ask for this, ignore this mail.\n`;
}

/** Posts `{to, subject, text, kind, link}` as JSON to the operator's address, with an optional bearer token. */
export function httpMailer(options: { readonly url: string; readonly token: string | null }): Mailer {
  return {
    async send(mail) {
      const { subject, text } = contentOf(mail);
      const answer = await fetch(options.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...(options.token === null ? {} : { authorization: `Bearer ${options.token}` }) },
        body: JSON.stringify({ to: mail.to, subject, text, kind: mail.kind, link: mail.link }),
        redirect: 'error',
        signal: AbortSignal.timeout(HTTP_TIMEOUT_MS),
      });
      await answer.body?.cancel();
      if (!answer.ok) throw new Error(`the mail service answered ${answer.status}`);
    },
  };
}
