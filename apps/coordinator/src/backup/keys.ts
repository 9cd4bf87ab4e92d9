/** `readKeys` reads the keys of a backup: rows of the table `secrets`, and files of the data directory. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { lazyValidator } from '@inference/protocol';
import Type from 'typebox';
import { StartupError } from '../config/startup-error.js';
import type { SecretRow } from '../database/backup/restored-rows.js';
import { copyVerified, verifyFiles } from './files.js';
import { verifierKeyOf } from './log-key.js';
import { type BackupFile, KEYS_FOLDER, type Manifest, readManifest, SECRETS_FILE } from './manifest.js';

const SecretsSchema = Type.Array(
  Type.Object({
    name: Type.String({ pattern: '^[A-Za-z0-9 _-]{1,100}$' }),
    value: Type.String({ pattern: '^[0-9a-f]{64}$' }),
  }),
  { maxItems: 1000 },
);
const validator = lazyValidator(SecretsSchema);

export interface BackupKeys {
  readonly secrets: readonly SecretRow[];
  copyTo(folder: string): Promise<void>;
}

/** For `--new-keys`: coordinators create new keys at their next start. */
export const NO_KEYS: BackupKeys = { secrets: [], copyTo: async () => {} };

/**
 * Reads the keys for a restore. With `--keys-from`, they come from another backup than the data.
 *
 * @param from Folder of the backup with the keys.
 * @param manifest Manifest of the backup with the data.
 * @throws {StartupError} The keys are missing or damaged, or belong to another transparency log.
 */
export async function readKeys(from: string, manifest: Manifest, signal: AbortSignal): Promise<BackupKeys> {
  const { files } = await readManifest(from);
  const keyFiles = files.filter(({ path }) => path.startsWith(`${KEYS_FOLDER}/`));
  if (!keyFiles.some(({ path }) => path === SECRETS_FILE)) throw new StartupError(`The backup ${from} has no keys.`);
  await verifyFiles(from, keyFiles, signal);
  const value: unknown = JSON.parse(await readFile(join(from, SECRETS_FILE), 'utf8'));
  if (!validator().Check(value)) throw new StartupError(`${SECRETS_FILE} of ${from} is damaged.`);
  const log = manifest.transparency_log;
  if (log !== null && verifierKeyOf(log.verifier_key.split('+')[0] ?? '', value) !== log.verifier_key) {
    throw new StartupError(`The keys of ${from} are not those of the backup: the transparency log has another key.`);
  }
  const copied = keyFiles.filter(({ path }) => path !== SECRETS_FILE);
  const nameOf = ({ path }: BackupFile): string => path.slice(KEYS_FOLDER.length + 1);
  return {
    secrets: value,
    copyTo: async (folder) => {
      for (const file of copied) await copyVerified(from, file, join(folder, nameOf(file)), signal);
    },
  };
}
