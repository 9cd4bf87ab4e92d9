/** `findPrograms`: paths of `nats-server` and PostgreSQL on this machine, for local clusters and tests. */
import { accessSync, constants, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { StartError } from '../start-error.js';

export interface InstalledPrograms {
  readonly natsServer: string;
  readonly initdb: string;
  readonly postgres: string;
}

/** Installation folders of Debian and Homebrew, often missing in a user's PATH. */
const MORE_FOLDERS = ['/usr/sbin', '/usr/local/sbin', '/usr/local/bin', '/opt/homebrew/bin', '/opt/homebrew/sbin'];
const VERSIONED_FOLDERS = [
  { parent: '/usr/lib/postgresql', bin: 'bin' },
  { parent: '/opt/homebrew/opt', bin: 'bin', pattern: /^postgresql@\d+$/ },
  { parent: '/usr/local/opt', bin: 'bin', pattern: /^postgresql@\d+$/ },
] as const;

/** Throws {@link StartError} with the commands that install missing programs. */
export function findPrograms(): InstalledPrograms {
  const folders = [...(process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== ''), ...MORE_FOLDERS];
  const natsServer = findIn(folders, 'nats-server');
  // Both programs come from the same folder, as versions must agree: Debian may have `initdb` alone on the PATH.
  const bin = [...versionedFolders(), ...folders].find(
    (folder) => isProgram(join(folder, 'initdb')) && isProgram(join(folder, 'postgres')),
  );
  const missing = [
    ...(natsServer === null ? [{ program: 'nats-server', debian: 'nats-server', homebrew: 'nats-server' }] : []),
    ...(bin === undefined ? [{ program: 'PostgreSQL (initdb and postgres)', debian: 'postgresql', homebrew: 'postgresql@17' }] : []),
  ];
  if (natsServer === null || bin === undefined) {
    throw new StartError(
      `${missing.map(({ program }) => program).join(' and ')} not found. Install with\n` +
        `  Debian, Ubuntu: apt-get install ${missing.map(({ debian }) => debian).join(' ')}\n` +
        `  macOS:          brew install ${missing.map(({ homebrew }) => homebrew).join(' ')}`,
    );
  }
  return { natsServer, initdb: join(bin, 'initdb'), postgres: join(bin, 'postgres') };
}

function versionedFolders(): string[] {
  return VERSIONED_FOLDERS.flatMap(({ parent, bin, ...rest }) => {
    const pattern = 'pattern' in rest ? rest.pattern : /^\d+$/;
    return namesIn(parent)
      .filter((name) => pattern.test(name))
      .sort((a, b) => Number(b.replace(/\D/g, '')) - Number(a.replace(/\D/g, '')))
      .map((name) => join(parent, name, bin));
  });
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

function findIn(folders: readonly string[], name: string): string | null {
  return folders.map((folder) => join(folder, name)).find(isProgram) ?? null;
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
