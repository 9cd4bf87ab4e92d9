/**
 * `createAuth` configures better-auth, the sign-in library, on the coordinator's database. Also reads or creates the cookie secret.
 *
 * Rate limits of better-auth are disabled, because the routes have their own.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { type BetterAuthOptions, betterAuth } from 'better-auth';
import { CamelCasePlugin } from 'kysely';
import { errorReason, StartupError } from '../config/startup-error.js';
import { endOldestSessions } from '../database/accounts/session-repository.js';
import { dialectOf } from '../database/connection/dialect.js';
import { sharedSecret } from '../database/secret-repository.js';
import type { Database } from '../database/tables.js';
import { hashedSessionTokens } from './hashed-session-tokens.js';
import type { Mailer } from './mailer.js';
import type { PasswordHasher } from './passwords/password-hasher.js';
import { type SecondFactorOptions, secondFactors } from './second-factors/second-factors.js';

interface AuthSettings extends SecondFactorOptions {
  readonly database: Database;
  readonly secret: string;
  /** Origin of the console, such as `https://gateway.example`. Null stands for the origin of each request, which the routes check. */
  readonly publicUrl: string | null;
  /** By default, better-auth hashes passwords on Node's shared thread pool. */
  readonly passwords?: Pick<PasswordHasher, 'hash' | 'verify'>;
  /** Null if the coordinator cannot send e-mails. */
  readonly mailer: Mailer | null;
  readonly requireEmailVerification: boolean;
  /** Creates the account of a stored user, in another transaction. After a failure, `SessionReader` creates the account. */
  readonly onSignUp: (user: { readonly id: string; readonly name: string }) => Promise<void>;
  /** Called after a password change or reset, to end access with the old password. */
  readonly onPasswordChange: (userId: string) => Promise<void>;
  /** Called before a user is removed. A rejection cancels the removal. */
  readonly onDelete: (userId: string) => Promise<void>;
  /** Receives errors of sent e-mails. */
  readonly onError: (error: unknown) => void;
}

export const AUTH_PATH = '/console/auth';
/** Session cookies are named `<COOKIE_PREFIX>.session_token`, under https with the further prefix `__Host-`. */
export const COOKIE_PREFIX = 'inference';
export const MIN_PASSWORD_LENGTH = 10;
export const MAX_PASSWORD_LENGTH = 128;

const HOUR_S = 3600;
const DAY_S = 24 * HOUR_S;

/** Exported for a test that derives the tables that better-auth needs. */
export function authOptions(settings: AuthSettings) {
  const { mailer, publicUrl, passwords } = settings;
  const isHttps = publicUrl?.startsWith('https://') ?? false;
  const sendMail = (kind: 'reset_password' | 'verify_email') => {
    // Not awaited, because the duration of the request would reveal whether the address has an account.
    return async ({ user, url }: { user: { email: string }; url: string }): Promise<void> => {
      mailer?.send({ kind, to: user.email, link: url }).catch(settings.onError);
    };
  };
  return {
    // Columns are in snake case. Transactions are off: they would block SQLite's only connection while a password is hashed.
    database: { db: settings.database.withPlugin(new CamelCasePlugin()), type: dialectOf(settings.database), transaction: false },
    ...(publicUrl === null ? {} : { baseURL: publicUrl }),
    basePath: AUTH_PATH,
    secret: settings.secret,
    appName: 'inference',
    telemetry: { enabled: false },
    rateLimit: { enabled: false },
    logger: { disabled: true },
    // better-auth rejects with errors, which the routes answer.
    onAPIError: { throw: true },
    emailAndPassword: {
      enabled: true,
      minPasswordLength: MIN_PASSWORD_LENGTH,
      maxPasswordLength: MAX_PASSWORD_LENGTH,
      ...(passwords === undefined
        ? {}
        : {
            password: {
              hash: (password: string) => passwords.hash(password),
              verify: (given: { hash: string; password: string }) => passwords.verify(given),
            },
          }),
      requireEmailVerification: settings.requireEmailVerification,
      revokeSessionsOnPasswordReset: true,
      resetPasswordTokenExpiresIn: HOUR_S,
      onPasswordReset: async ({ user }: { user: { id: string; email: string } }, request?: Request) => {
        await settings.onPasswordChange(user.id);
        const origin = publicUrl ?? (request === undefined ? null : new URL(request.url).origin);
        if (origin !== null) mailer?.send({ kind: 'password_changed', to: user.email, link: `${origin}/account` }).catch(settings.onError);
      },
      ...(mailer === null ? {} : { sendResetPassword: sendMail('reset_password') }),
    },
    ...(mailer === null
      ? {}
      : {
          emailVerification: {
            sendVerificationEmail: sendMail('verify_email'),
            sendOnSignUp: settings.requireEmailVerification,
            autoSignInAfterVerification: true,
          },
        }),
    user: {
      modelName: 'authUsers',
      deleteUser: { enabled: true, beforeDelete: async (user: { id: string }) => settings.onDelete(user.id) },
    },
    session: {
      modelName: 'authSessions',
      expiresIn: 14 * DAY_S,
      updateAge: DAY_S,
      // Adding a passkey asks for the password, so sessions of any age may add one.
      freshAge: 0,
      cookieCache: { enabled: false },
    },
    account: { modelName: 'authCredentials', accountLinking: { enabled: false } },
    verification: { modelName: 'authVerifications', storeIdentifier: 'hashed' as const },
    plugins: [hashedSessionTokens(), ...secondFactors(settings)],
    databaseHooks: {
      user: { create: { after: async (user: { id: string; name: string }) => settings.onSignUp(user) } },
      session: { create: { after: async ({ userId }: { userId: string }) => endOldestSessions(settings.database, userId) } },
      // The only update of a credential is a new password. After a reset, this hook gets a number instead of a row: see `onPasswordReset`.
      account: {
        update: {
          after: async ({ userId }: { userId?: string }) => (userId === undefined ? undefined : settings.onPasswordChange(userId)),
        },
      },
    },
    advanced: {
      // `__Host-` instead of better-auth's `__Secure-`: https only, this host only, path `/` (RFC 6265bis section 4.1.3.2).
      useSecureCookies: false,
      cookiePrefix: isHttps ? `__Host-${COOKIE_PREFIX}` : COOKIE_PREFIX,
      defaultCookieAttributes: { httpOnly: true, sameSite: 'lax', secure: isHttps, path: '/' },
      disableOriginCheck: false,
      disableCSRFCheck: false,
      ipAddress: { ipAddressHeaders: [CLIENT_ADDRESS_HEADER] },
      database: { generateId: () => randomUUID() },
    },
  } satisfies BetterAuthOptions;
}

/** Request header with the client's IP address, for better-auth. A header of this name that the client sent is replaced or removed. */
export const CLIENT_ADDRESS_HEADER = 'x-client-address';

export function createAuth(settings: AuthSettings) {
  return betterAuth(authOptions(settings));
}

export type Auth = ReturnType<typeof createAuth>;

/** 32 bytes in base64url. */
const SECRET_PATTERN = /^[A-Za-z0-9_-]{43}$/;

/**
 * Secret that signs session cookies, from a file that is created if missing. In a cluster, {@link sharedAuthSecret} replaces this function.
 *
 * @throws {StartupError} The file cannot be read or written, or is damaged.
 */
export function ensureAuthSecret(file: string): string {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    // With the exclusive flag, only one of two concurrent processes creates the file. Both then read the same secret.
    writeFileSync(file, randomBytes(32).toString('base64url'), { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if (errorReason(error) !== 'EEXIST') {
      throw new StartupError(`The session secret ${file} cannot be written: ${errorReason(error)}.`, { cause: error });
    }
  }
  return readSecret(file);
}

/**
 * Secret that signs session cookies, shared by a cluster through the database.
 *
 * The first coordinator stores the secret of its file, if any, so that existing sessions stay valid.
 */
export async function sharedAuthSecret(database: Database, file: string): Promise<string> {
  const initial = existsSync(file) ? Buffer.from(readSecret(file), 'base64url') : undefined;
  return Buffer.from(await sharedSecret(database, SESSION_COOKIE_SECRET, initial)).toString('base64url');
}

/** Name of the shared secret in the table `secrets`. */
const SESSION_COOKIE_SECRET = 'session-cookies';

function readSecret(file: string): string {
  let text: string;
  try {
    chmodSync(file, 0o600);
    text = readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new StartupError(`The session secret ${file} cannot be read: ${errorReason(error)}.`, { cause: error });
  }
  if (!SECRET_PATTERN.test(text)) throw new StartupError(`The session secret ${file} is damaged; remove the file to have a new one made.`);
  return text;
}
