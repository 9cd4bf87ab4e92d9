/**
 * `account.json` in the data directory: the machine token that its owner's sign-in gave, and the coordinator that it is for. Only
 * its owner may read it, and it is written whole or not at all. A token is shown to no other coordinator.
 */
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import { writePrivateFile } from '../files/private-file.js';

const AccountSchema = Type.Object({
  /** Address for HTTP, without a slash at its end. */
  coordinator: Type.String({ pattern: '^https?://[^\\s]+$' }),
  token: Type.String({ pattern: '^[A-Za-z0-9._~-]{16,256}$' }),
  /** When it was given, in milliseconds since 1970. */
  signed_in_at: Type.Integer({ minimum: 0 }),
});
export type Account = Static<typeof AccountSchema>;

const described = Compile(AccountSchema);

/** The file is there and cannot be used; the message is a sentence for the owner. */
export class AccountFileError extends Error {
  override name = 'AccountFileError';
}

export function accountPath(dataDir: string): string {
  return join(dataDir, 'account.json');
}

/** Null where there is none. Throws {@link AccountFileError}. */
export function readAccount(dataDir: string): Account | null {
  const path = accountPath(dataDir);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return null;
    throw new AccountFileError(`${path} cannot be read (${code}). Run "inference-provider login" to link this machine anew.`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = null;
  }
  if (!described.Check(value)) {
    throw new AccountFileError(`${path} is damaged. Run "inference-provider login" to link this machine anew.`);
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
