/** `createAdmin`, of the command `admin create`, creates an account as a sign-up in the console does, and sets the admin flag. */
import { randomBytes } from 'node:crypto';
import { isName } from '@inference/protocol';
import { createAuth, MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH } from '../accounts/auth.js';
import { StartupError } from '../config/startup-error.js';
import { AccountRepository } from '../database/accounts/account-repository.js';
import { OperatorRepository } from '../database/accounts/operator-repository.js';
import type { Database } from '../database/tables.js';
import { MAX_LENGTHS } from '../routes/accounts/auth-routes.js';
import { UsageError } from './command.js';

interface NewAdmin {
  readonly email: string;
  readonly name: string;
  readonly password: string;
}

/** Messages by error code of better-auth, the sign-in library. */
const SIGN_UP_ERRORS: Readonly<Record<string, string>> = {
  INVALID_EMAIL: '--email must be an e-mail address.',
  // Concerns the address, because `checkPerson` and `checkPassword` have accepted the name and the password.
  VALIDATION_ERROR: '--email must be an e-mail address.',
  USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL: 'This e-mail address has an account. To give it the admin flag: inference-coordinator admin grant',
  // Somebody else signed up with the same address at the same moment.
  FAILED_TO_CREATE_USER: 'The account could not be created. Try again.',
};

/** Throws {@link UsageError} for a name or address that sign-up does not accept. */
export function checkPerson({ email, name }: Pick<NewAdmin, 'email' | 'name'>): void {
  if (email.length > MAX_LENGTHS.email || !/^[^\s@]+@[^\s@]+$/.test(email)) throw new UsageError('--email must be an e-mail address.');
  if (name.length > MAX_LENGTHS.name || !isName(name)) {
    throw new UsageError(`--name must be one line of at most ${MAX_LENGTHS.name} characters.`);
  }
}

/** Throws StartupError for a password that sign-up does not accept. */
export function checkPassword(password: string): void {
  if (password.length >= MIN_PASSWORD_LENGTH && password.length <= MAX_PASSWORD_LENGTH) return;
  throw new StartupError(`The password must have ${MIN_PASSWORD_LENGTH} to ${MAX_PASSWORD_LENGTH} characters. Nothing was changed.`);
}

/** Creates the account with a confirmed e-mail address, and returns its id. A StartupError means that nothing was stored. */
export async function createAdmin(database: Database, person: NewAdmin, now: () => number): Promise<string> {
  const accounts = new AccountRepository({ database, now, onChange: () => {} });
  const auth = createAuth({
    database,
    // Any secret works, because the session cookie of this sign-up is discarded.
    secret: randomBytes(32).toString('base64url'),
    publicUrl: null,
    mailer: null,
    // With true, better-auth would report success for an existing account, so that strangers cannot test addresses.
    requireEmailVerification: false,
    onSignUp: async (user) => void (await accounts.ensure(user)),
    onPasswordChange: async () => {},
    onDelete: async () => {},
    secondSteps: undefined,
    onError: () => {},
  });
  const { id } = await signUp(auth, person);
  await new OperatorRepository(database).confirmSignUp(id);
  await accounts.ensure({ id, name: person.name });
  await accounts.setAdmin(id, true);
  return id;
}

async function signUp(auth: ReturnType<typeof createAuth>, { email, name, password }: NewAdmin): Promise<{ readonly id: string }> {
  try {
    return (await auth.api.signUpEmail({ body: { email, name, password } })).user;
  } catch (error) {
    const code = (error as { body?: { code?: unknown } }).body?.code;
    const text = typeof code === 'string' ? SIGN_UP_ERRORS[code] : undefined;
    if (text === undefined) throw error;
    throw new StartupError(text, { cause: error });
  }
}
