/** `SessionReader` finds the signed-in user of a request by the session cookie. */
import type { Account, AccountRepository } from '../database/accounts/account-repository.js';
import { type Auth, CLIENT_ADDRESS_HEADER } from './auth.js';

export interface SignedIn {
  /** The person's own account; for a request that acts for an organisation, `actForAccount` replaces it. */
  readonly account: Account;
  readonly name: string;
  readonly email: string;
  readonly emailVerified: boolean;
  readonly sessionId: string;
}

export class SessionReader {
  readonly #auth: Auth;
  readonly #accounts: AccountRepository;

  constructor(auth: Auth, accounts: AccountRepository) {
    this.#auth = auth;
    this.#accounts = accounts;
  }

  /**
   * `signedIn` is null without a valid session. The response must set `setCookies`, which extend or delete the session cookie.
   *
   * A request with an `authorization` header has no session, because a bearer token skips the check against other origins (`hasBearer`).
   */
  async find(headers: Headers): Promise<{ readonly signedIn: SignedIn | null; readonly setCookies: readonly string[] }> {
    if (headers.has('authorization') || !headers.has('cookie')) return { signedIn: null, setCookies: [] };
    headers.delete(CLIENT_ADDRESS_HEADER);
    const answer = await this.#auth.api.getSession({ headers, returnHeaders: true });
    const setCookies = answer.headers.getSetCookie();
    if (answer.response === null) return { signedIn: null, setCookies };
    const { user, session } = answer.response;
    const account = await this.#accounts.ensure({ id: user.id, name: user.name });
    if (account.deletedAt !== null) return { signedIn: null, setCookies };
    return {
      signedIn: { account, name: user.name, email: user.email, emailVerified: user.emailVerified, sessionId: session.id },
      setCookies,
    };
  }
}
