/** File layout of an installation by `install.sh`: `versions/1.2.3`, `downloads`, and the symbolic links `current` and `guard`. */
import { mkdirSync, readdirSync, readlinkSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { basename, join } from 'node:path';

export const versionsFolder = (prefix: string): string => join(prefix, 'versions');
export const versionFolder = (prefix: string, version: string): string => join(prefix, 'versions', version);
export const downloadsFolder = (prefix: string): string => join(prefix, 'downloads');

/** Of folders below `versions` that are incomplete or being removed. */
export const DRAFT_PREFIX = '.unpacking-';

const VERSION = /^\d+\.\d+\.\d+$/;

/** Version that the next start runs. Null if the link is missing or invalid. */
export function currentVersion(prefix: string): string | null {
  try {
    const name = basename(readlinkSync(join(prefix, 'current')));
    return VERSION.test(name) ? name : null;
  } catch {
    return null;
  }
}

/** Atomic. `current` names the version of the next start, `guard` that whose guard supervises a trial. */
export function point(prefix: string, link: 'current' | 'guard', version: string): void {
  const draft = join(prefix, `.${link}-${process.pid}`);
  rmSync(draft, { force: true });
  symlinkSync(join('versions', version), draft);
  renameSync(draft, join(prefix, link));
}

/** Completely installed versions. */
export function presentVersions(prefix: string): string[] {
  try {
    return readdirSync(versionsFolder(prefix)).filter((name) => VERSION.test(name));
  } catch {
    return [];
  }
}

/** Removes unfinished updates, archives, and all versions except `keep`. */
export function prune(prefix: string, keep: readonly string[]): void {
  for (const name of readdirSync(versionsFolder(prefix))) {
    if (keep.includes(name)) continue;
    // Renames first, because a visible version must be complete.
    const draft = join(versionsFolder(prefix), name.startsWith(DRAFT_PREFIX) ? name : `${DRAFT_PREFIX}${name}`);
    if (!name.startsWith(DRAFT_PREFIX)) renameSync(join(versionsFolder(prefix), name), draft);
    rmSync(draft, { recursive: true, force: true });
  }
  rmSync(downloadsFolder(prefix), { recursive: true, force: true });
}

export function makeFolders(prefix: string): void {
  mkdirSync(versionsFolder(prefix), { recursive: true });
  mkdirSync(downloadsFolder(prefix), { recursive: true, mode: 0o700 });
}
