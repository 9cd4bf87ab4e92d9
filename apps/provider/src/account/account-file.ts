/** `account.json`: the machine token, and the only coordinator that may receive it. `writePrivateFile` gives mode 0600 and atomicity. */
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { lazyValidator } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { writePrivateFile } from '../files/private-file.js';

const AccountSchema = Type.Object({
  /** HTTP address without a trailing slash. */
  coordinator: Type.String({ pattern: '^https?://\\S*[^\\s/]$' }),
  token: Type.String({ pattern: '^[A-Za-z0-9._~-]{16,256}$' }),
  /** Milliseconds since 1970. */
  signed_in_at: Type.Integer({ minimum: 0 }),
});
export type Account = Static<typeof AccountSchema>;

const accountValidator = lazyValidator(AccountSchema);

/** The file exists but is unusable. The message is a sentence for the owner. */
export class AccountFileError extends Error {
  override name = 'AccountFileError';
}

export function accountPath(dataDir: string): string {
  return join(dataDir, 'account.json');
}

/** Returns null if there is no file. Throws {@link AccountFileError}. */
export function readAccount(dataDir: string): Account | null {
  const path = accountPath(dataDir);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return null;
    throw new AccountFileError(`${path} cannot be read (${code}). Run "inference-provider login" to link this machine again.`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = null;
  }
  if (!accountValidator().Check(value)) {
    throw new AccountFileError(`${path} is damaged. Run "inference-provider login" to link this machine again.`);
  }
  return value;
}

export function writeAccount(dataDir: string, account: Account): void {
  const path = accountPath(dataDir);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writePrivateFile(path, `${JSON.stringify(account, null, 2)}\n`);
}

export function forgetAccount(dataDir: string): void {
  rmSync(accountPath(dataDir), { force: true });
}
