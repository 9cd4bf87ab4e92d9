/** `AccountNotices` mails users about changes of their sign-in, such as a new passkey, so that they notice an attacker. */
import type { Mailer, NoticeKind } from './mailer.js';

export interface AccountNotices {
  /** Sends in the background, with a link to the account page. `origin` is the scheme and host of the console. */
  send(kind: NoticeKind, email: string, origin: string): void;
}

export function accountNotices(mailer: Mailer | null, onError: (error: unknown) => void): AccountNotices {
  return {
    send(kind, email, origin) {
      mailer?.send({ kind, to: email, link: `${origin}/account` }).catch(onError);
    },
  };
}
