/** `newPassword`: password for `admin create`, typed on the terminal, read from a file, or generated. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { errorReason, StartupError } from '../config/startup-error.js';
import { type CommandContext, UsageError } from './command.js';

export interface NewPassword {
  readonly password: string;
  /** The command must print the password, because nobody knows it yet. */
  readonly isGenerated: boolean;
}

interface PasswordOptions {
  readonly 'password-file'?: string | undefined;
  readonly 'generate-password'?: boolean | undefined;
}

/** Random bytes of a generated password: 144 bits, 24 characters in base64url. */
const GENERATED_BYTES = 18;

/** Throws {@link UsageError} if neither an option nor a terminal provides a password. Throws StartupError for an unreadable file. */
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

/** Asks a question on the terminal and hides the typed answer. Throws StartupError on Ctrl-C and at the end of input. */
export async function askHidden(question: string): Promise<string> {
  // Discards the characters that `readline` echoes.
  const discarded = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: process.stdin, output: discarded, terminal: true });
  const aborted = new AbortController();
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
