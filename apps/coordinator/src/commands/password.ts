/** The password of a new account: asked for, read from a file, or generated. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { errorReason, StartupError } from '../config/startup-error.js';
import { type CommandContext, UsageError } from './command.js';

export interface NewPassword {
  readonly password: string;
  /** Whether the person has not seen the password yet. */
  readonly isGenerated: boolean;
}

interface PasswordOptions {
  readonly 'password-file'?: string | undefined;
  readonly 'generate-password'?: boolean | undefined;
}

/** 144 bits. */
const GENERATED_BYTES = 18;

/** Throws {@link UsageError} without a terminal and option, and StartupError for a file that cannot be read. */
export async function newPassword(options: PasswordOptions, { askHidden }: Pick<CommandContext, 'askHidden'>): Promise<NewPassword> {
  const { 'password-file': path, 'generate-password': generates = false } = options;
  if (path !== undefined && generates) throw new UsageError('--password-file and --generate-password exclude each other.');
  if (generates) return { password: randomBytes(GENERATED_BYTES).toString('base64url'), isGenerated: true };
  if (path !== undefined) return { password: readPassword(path), isGenerated: false };
  if (askHidden === null) throw new UsageError('Without a terminal, --password-file or --generate-password is needed.');
  const password = await askHidden('Password: ');
  if ((await askHidden('Again: ')) !== password) throw new StartupError('The passwords differ. Nothing was changed.');
  return { password, isGenerated: false };
}

function readPassword(path: string): string {
  try {
    return readFileSync(path, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    throw new StartupError(`The password file ${path} cannot be read: ${errorReason(error)}.`, { cause: error });
  }
}

/** Asks on the terminal without echo. Throws StartupError on Ctrl-C and at the end of input. */
export async function askHidden(question: string): Promise<string> {
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: process.stdin, output: silent, terminal: true });
  const aborted = new AbortController();
  // The terminal no longer echoes from here on.
  process.stderr.write(question);
  for (const event of ['SIGINT', 'close'] as const) lines.once(event, () => aborted.abort());
  try {
    return await lines.question('', { signal: aborted.signal });
  } catch (error) {
    if (aborted.signal.aborted) throw new StartupError('Canceled. Nothing was changed.', { cause: error });
    throw error;
  } finally {
    process.stderr.write('\n');
    lines.close();
  }
}
