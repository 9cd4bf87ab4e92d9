/** Mails that inform an account about changes of its sign-in, so that its owner notices a stranger's change. */
import type { Mailer, NoticeKind } from './mailer.js';

export interface AccountNotices {
  /** Sends in the background. `origin`: of the console, for the link to the account page. */
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
