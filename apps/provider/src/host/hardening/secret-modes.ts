/** `repairModes` makes the data directory and the secrets in it accessible to their owner only. */
import { chmodSync, lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Files and folders with keys, tokens, settings and logs. Others, such as models, are protected by the mode of the data directory. */
const SECRET_PATHS = ['config.toml', 'account.json', 'enclave', 'logs'];

export class InsecureModeError extends Error {
  override name = 'InsecureModeError';
}

/** Returns the paths whose mode was changed. Throws {@link InsecureModeError} for failed changes and, unless root, files of other users. */
export function repairModes(dataDir: string, uid: number | undefined = process.getuid?.()): string[] {
  const repaired: string[] = [];
  const repair = (path: string): void => {
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found === undefined || found.isSymbolicLink() || found.isSocket()) return;
    if (uid !== undefined && uid !== 0 && found.uid !== uid) throw new InsecureModeError(`${path} belongs to another user`);
    const expectedMode = found.isDirectory() ? 0o700 : 0o600;
    if ((found.mode & 0o077) !== 0) {
      try {
        chmodSync(path, expectedMode);
      } catch (error) {
        throw new InsecureModeError(
          `other users can read ${path}, and the mode cannot be changed (${(error as NodeJS.ErrnoException).code})`,
        );
      }
      repaired.push(path);
    }
    if (found.isDirectory() && path !== dataDir) for (const name of readdirSync(path)) repair(join(path, name));
  };
  repair(dataDir);
  for (const name of SECRET_PATHS) repair(join(dataDir, name));
  return repaired;
}
