/**
 * `KnownBrowsers` recognises a browser in which a user has signed in before, by a signed cookie. The cookie grants no access.
 *
 * Limits count sign-ins from a known browser separately, so wrong passwords from elsewhere cannot lock out the user.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

const ID_BYTES = 16;
const MAX_EMAILS = 5;
/** Cookie value: a random id, then one HMAC per e-mail address, all in base64url. */
const COOKIE_VALUE = new RegExp(`^[A-Za-z0-9_-]{22}(?:\\.[A-Za-z0-9_-]{43}){1,${MAX_EMAILS}}$`);
const LIFETIME_S = 365 * 24 * 3600;

export class KnownBrowsers {
  readonly #secret: string;
  readonly #cookieName: string;
  readonly #isHttps: boolean;

  constructor(options: { readonly secret: string; readonly cookiePrefix: string; readonly isHttps: boolean }) {
    this.#secret = options.secret;
    this.#cookieName = `${options.isHttps ? '__Host-' : ''}${options.cookiePrefix}.device`;
    this.#isHttps = options.isHttps;
  }

  /** Id of the browser, or null if `email` is not among the last {@link MAX_EMAILS} that signed in there. */
  idOf(cookies: string | undefined, email: string): string | null {
    const [id, ...hashes] = this.#read(cookies);
    if (id === undefined) return null;
    const expected = this.#hash(id, email);
    return hashes.some((hash) => timingSafeEqual(Buffer.from(hash), Buffer.from(expected))) ? id : null;
  }

  /** Value of `Set-Cookie` after a sign-in. */
  cookieFor(cookies: string | undefined, email: string): string {
    const [id = randomBytes(ID_BYTES).toString('base64url'), ...hashes] = this.#read(cookies);
    const own = this.#hash(id, email);
    const value = [id, own, ...hashes.filter((hash) => hash !== own).slice(0, MAX_EMAILS - 1)].join('.');
    const secure = this.#isHttps ? '; Secure' : '';
    return `${this.#cookieName}=${value}; Max-Age=${LIFETIME_S}; Path=/; HttpOnly; SameSite=Lax${secure}`;
  }

  /** Id and hashes from the cookie. Empty without a well-formed cookie. */
  #read(cookies: string | undefined): string[] {
    for (const pair of (cookies ?? '').split(';')) {
      const at = pair.indexOf('=');
      if (at === -1 || pair.slice(0, at).trim() !== this.#cookieName) continue;
      const value = pair.slice(at + 1).trim();
      if (COOKIE_VALUE.test(value)) return value.split('.');
    }
    return [];
  }

  #hash(id: string, email: string): string {
    return createHmac('sha256', this.#secret).update(`known device\0${id}\0${email}`).digest('base64url');
  }
}
