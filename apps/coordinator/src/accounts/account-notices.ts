/** `AccountNotices`: mails about changes of a person's sign-in, such as a new passkey. The person thereby notices a stranger's change. */
import type { Mailer, NoticeKind } from './mailer.js';

export interface AccountNotices {
  /** Sends in the background. `origin`: scheme and host of the console, for the link to the account page. */
  send(kind: NoticeKind, email: string, origin: string): void;
}

/** `mailer`: null if the coordinator cannot send mail; notices are then omitted. */
export function accountNotices(mailer: Mailer | null, onError: (error: unknown) => void): AccountNotices {
  return {
    send(kind, email, origin) {
      mailer?.send({ kind, to: email, link: `${origin}/account` }).catch(onError);
    },
  };
}
