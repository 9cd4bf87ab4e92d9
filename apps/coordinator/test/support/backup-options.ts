/** Options of backups and restores in tests, with the defaults of the commands `backup` and `restore`. */
import type { BackupOptions } from '../../src/backup/create-backup.js';
import type { RestoreOptions } from '../../src/backup/restore-backup.js';
import { type Config, readConfig } from '../../src/config/config.js';

type Place = Readonly<Record<string, string>>;

export function backupOptions(out: string, place: Place, change: Partial<BackupOptions> = {}): BackupOptions {
  return {
    config: configOf(place),
    out,
    hasKeys: true,
    hasImages: false,
    keep: null,
    postgresBin: null,
    programVersion: 'test',
    settings: [],
    signal: new AbortController().signal,
    ...change,
  };
}

export function restoreOptions(from: string, place: Place, change: Partial<RestoreOptions> = {}): RestoreOptions {
  return {
    config: configOf(place),
    from,
    force: false,
    keysFrom: null,
    newKeys: false,
    keepSessions: false,
    newLogOrigin: null,
    postgresBin: null,
    signal: new AbortController().signal,
    ...change,
  };
}

function configOf(place: Place): Pick<Config, 'dataDir' | 'databaseUrl'> {
  return readConfig(place);
}
