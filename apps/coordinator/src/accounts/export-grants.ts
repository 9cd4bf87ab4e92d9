/** `ExportGrants` signs and checks export grants: tokens, not stored, that permit the download of account data for ten minutes. */
import { createHmac, timingSafeEqual } from 'node:crypto';

const LIFETIME_MS = 10 * 60_000;
/** `expiry.signature`: milliseconds since 1970, and HMAC-SHA-256 in base64url. */
const GRANT = /^(\d{13,15})\.([A-Za-z0-9_-]{43})$/;

export interface ExportScope {
  readonly sessionId: string;
  readonly accountId: string;
}

export class ExportGrants {
  readonly #secret: string;
  readonly #now: () => number;

  /** `secret` is the secret of session cookies, which all coordinators of a cluster share. */
  constructor(options: { readonly secret: string; readonly now: () => number }) {
    this.#secret = options.secret;
    this.#now = options.now;
  }

  /** `expiresAt` is in milliseconds since 1970. */
  create(scope: ExportScope): { readonly grant: string; readonly expiresAt: number } {
    const expiresAt = this.#now() + LIFETIME_MS;
    return { grant: `${expiresAt}.${this.#sign(scope, expiresAt)}`, expiresAt };
  }

  isValid(scope: ExportScope, grant: string): boolean {
    const [, expires = '', signature = ''] = GRANT.exec(grant) ?? [];
    const expiresAt = Number(expires);
    if (signature === '' || expiresAt <= this.#now()) return false;
    return timingSafeEqual(Buffer.from(signature), Buffer.from(this.#sign(scope, expiresAt)));
  }

  #sign({ sessionId, accountId }: ExportScope, expiresAt: number): string {
    return createHmac('sha256', this.#secret).update(`account export\0${sessionId}\0${accountId}\0${expiresAt}`).digest('base64url');
  }
}
