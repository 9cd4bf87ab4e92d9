/**
 * `admin` command: creates accounts of operators, grants, revokes and lists the admin flag, and generates values for ADMIN_KEY.
 *
 * A running coordinator reads the flag at each request of an operator's session, so changes apply at once.
 */

import { StartupError } from '../config/startup-error.js';
import { AccountRepository } from '../database/accounts/account-repository.js';
import { newKeyText } from '../database/accounts/api-key-repository.js';
import { OperatorAuditLog } from '../database/accounts/operator-audit-log.js';
import { OperatorRepository } from '../database/accounts/operator-repository.js';
import type { Database } from '../database/tables.js';
import { type Command, type CommandContext, EXIT, optionsOf, UsageError } from './command.js';
import { withDatabase } from './command-database.js';
import { checkPassword, checkPerson, createAdmin } from './create-admin.js';
import { newPassword } from './password.js';
import { settingsOf } from './read-settings.js';

/** Name of the operator in the audit log. */
const OPERATOR = 'command';

type Subcommand = (args: readonly string[], context: CommandContext) => Promise<number>;

const SUBCOMMANDS: Readonly<Record<string, Subcommand>> = {
  create,
  grant: flagSubcommand('grant'),
  revoke: flagSubcommand('revoke'),
  list,
  key,
};

export const adminCommand: Command = {
  usage: `admin create|grant|revoke|list|key [OPTIONS] [--env-file FILE]

  create --email ADDRESS [--name NAME] [--password-file FILE | --generate-password]
            creates an account with the admin flag. The password is asked for, read from a file, or generated and
            printed. The address counts as confirmed.
  grant --email ADDRESS [--unverified]
            gives an existing account the admin flag. An account that has not confirmed its address is refused unless
            --unverified is given: somebody else may have signed up with the address.
  revoke --email ADDRESS
            takes the flag away
  list [--json]
            lists the accounts with the flag
  key       prints a new value for ADMIN_KEY, and stores nothing

Changes are written to the audit log, with the actor \`${OPERATOR}\`. Coordinators may run meanwhile.
Exit codes: 0 done, 1 refused or failed, 2 the command line or the settings cannot be used.`,
  async run([name = '', ...args], context) {
    const subcommand = SUBCOMMANDS[name];
    if (subcommand === undefined || !Object.hasOwn(SUBCOMMANDS, name)) {
      const problem = name === '' ? 'A word is missing after admin' : `There is no command ${JSON.stringify(`admin ${name}`)}`;
      throw new UsageError(`${problem}; there are: ${Object.keys(SUBCOMMANDS).join(', ')}.`);
    }
    return subcommand(args, context);
  },
};

async function create(args: readonly string[], context: CommandContext): Promise<number> {
  const options = optionsOf(args, {
    email: { type: 'string' },
    name: { type: 'string' },
    'password-file': { type: 'string' },
    'generate-password': { type: 'boolean' },
  });
  const email = requiredEmail(options.email);
  const name = options.name ?? (email.split('@')[0] as string);
  checkPerson({ email, name });
  return withDatabase(settingsOf(context.env), async (database) => {
    if ((await new OperatorRepository(database).findUser(email)) !== null) {
      throw new StartupError(`${email} has an account. To give it the admin flag: inference-coordinator admin grant --email ${email}`);
    }
    const { password, isGenerated } = await newPassword(options, context);
    checkPassword(password);
    // The entry omits address and name. Erasing an account finds its entries by account id, which does not exist yet.
    const id = await withAuditEntry(database, { action: 'admin create', subject: null, details: {} }, () =>
      createAdmin(database, { email, name, password }, Date.now),
    );
    context.out(`Created the account ${email.toLowerCase()} (${id}) with the admin flag.`);
    if (isGenerated) context.out(`Password, shown only now: ${password}`);
    return EXIT.ok;
  });
}

function flagSubcommand(change: 'grant' | 'revoke'): Subcommand {
  const isGrant = change === 'grant';
  return async (args, { env, out }) => {
    const options = optionsOf(args, { email: { type: 'string' }, ...(isGrant ? { unverified: { type: 'boolean' } as const } : {}) });
    const email = requiredEmail(options.email);
    return withDatabase(settingsOf(env), async (database) => {
      const operators = new OperatorRepository(database);
      const user = await operators.findUser(email);
      if (user === null) throw new StartupError(`No account has the e-mail address ${email}.`);
      if (isGrant && !user.isVerified && options.unverified !== true) {
        throw new StartupError(
          `${email} is not confirmed, so the account may be of somebody else. Confirm the address first, or give --unverified.`,
        );
      }
      const accounts = new AccountRepository({ database, now: Date.now, onChange: () => {} });
      const { isAdmin, suspendedAt } = await accounts.ensure(user);
      if (isAdmin === isGrant) {
        out(`${email} ${isGrant ? 'has the admin flag already' : 'does not have the admin flag'}. Nothing was changed.`);
        return EXIT.ok;
      }
      await withAuditEntry(database, { action: `admin ${change}`, subject: user.id, details: { email: email.toLowerCase() } }, async () => {
        if (!(await accounts.setAdmin(user.id, isGrant))) throw new StartupError(`The account of ${email} is closed.`);
        return user.id;
      });
      out(isGrant ? `${email} has the admin flag.` : `${email} no longer has the admin flag.`);
      if (suspendedAt !== null) out('The account is suspended, so nobody can use it.');
      if (!isGrant && (await operators.list()).length === 0)
        out('No account has the flag now. ADMIN_KEY, if set, still opens the admin API.');
      return EXIT.ok;
    });
  };
}

async function list(args: readonly string[], { env, out }: CommandContext): Promise<number> {
  const { json = false } = optionsOf(args, { json: { type: 'boolean' } });
  const operators = await withDatabase(settingsOf(env), (database) => new OperatorRepository(database).list());
  const rows = operators.map(({ accountId, email, name, adminSince, isSuspended }) => ({
    account_id: accountId,
    email,
    name,
    admin_since: new Date(adminSince).toISOString(),
    suspended: isSuspended,
  }));
  if (json) out(JSON.stringify(rows, null, 2));
  else if (rows.length === 0) out('No account has the admin flag. To create one: inference-coordinator admin create');
  for (const row of json ? [] : rows) {
    out(`${row.email ?? row.name}  ${row.account_id}  since ${row.admin_since}${row.suspended ? '  suspended' : ''}`);
  }
  return EXIT.ok;
}

async function key(args: readonly string[], { out }: CommandContext): Promise<number> {
  optionsOf(args, {});
  out(newKeyText());
  return EXIT.ok;
}

function requiredEmail(email: string | undefined): string {
  if (email === undefined) throw new UsageError('--email is missing.');
  return email;
}

interface AuditedAction {
  readonly action: string;
  /** Account id; null: `work` creates the account and resolves to the id. */
  readonly subject: string | null;
  readonly details: Readonly<Record<string, string>>;
}

/** Writes an entry to the audit log, runs `work`, then adds the outcome. `work` does not run if the entry cannot be written. */
async function withAuditEntry<T extends string>(
  database: Database,
  { action, subject, details }: AuditedAction,
  work: () => Promise<T>,
): Promise<T> {
  const log = new OperatorAuditLog({ database, now: Date.now });
  const id = await log.begin({ operator: OPERATOR, action, subject, details: JSON.stringify(details) });
  try {
    const result = await work();
    await log.end(id, 'done', subject ?? result);
    return result;
  } catch (error) {
    await log.end(id, 'failed');
    throw error;
  }
}
