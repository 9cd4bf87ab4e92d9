/** `AccountNotices`: mails a user about changes of the sign-in, such as a new passkey, so that the user notices an attacker. */
import type { Mailer, NoticeKind } from './mailer.js';

export interface AccountNotices {
  /** Sends in the background. `origin`: scheme and host of the console, for the link to the account page. */
  send(kind: NoticeKind, email: string, origin: string): void;
}

/** `mailer`: null if the coordinator sends no mail. Notices are then omitted. */
export function accountNotices(mailer: Mailer | null, onError: (error: unknown) => void): AccountNotices {
  return {
    send(kind, email, origin) {
      mailer?.send({ kind, to: email, link: `${origin}/account` }).catch(onError);
    },
  };
}
