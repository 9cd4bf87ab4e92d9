/** Whether what must be its owner's alone is so: the key, the account's token, the settings and the logs. */
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Finding, ok, problem } from './check.js';

const SECRETS = ['config.toml', 'account.json', 'enclave', 'logs'];

export async function checkSecrets(dataDir: string): Promise<Finding[]> {
  const findings: Finding[] = [];
  const look = async (path: string): Promise<void> => {
    const found = await lstat(path).catch(() => null);
    if (found === null || found.isSymbolicLink()) return;
    const uid = process.getuid?.();
    if (uid !== undefined && found.uid !== uid)
      findings.push(problem(`${path} belongs to another user`, `Run: sudo chown -R "$USER" '${dataDir}'`));
    else if ((found.mode & 0o077) !== 0) findings.push(problem(`other users can read ${path}`, `Run: chmod go= '${path}'`));
    if (found.isDirectory()) for (const name of await readdir(path).catch(() => [])) await look(join(path, name));
  };
  for (const name of SECRETS) await look(join(dataDir, name));
  return findings.length > 0 ? findings : [ok('keys, tokens and logs are yours alone')];
}
