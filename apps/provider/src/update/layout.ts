/**
 * What lies where in an installation of our own. `current` is a symbolic link that is replaced in one step, so that there is a
 * whole version behind it at every moment, whoever is killed when.
 */
import { mkdirSync, readdirSync, readlinkSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { basename, join } from 'node:path';

export const versionsFolder = (prefix: string): string => join(prefix, 'versions');
export const versionFolder = (prefix: string, version: string): string => join(prefix, 'versions', version);
export const downloadsFolder = (prefix: string): string => join(prefix, 'downloads');

/** Begins the names of folders below `versions` that are none yet, or none any more. */
export const DRAFT_PREFIX = '.unpacking-';

const VERSION = /^\d+\.\d+\.\d+$/;

/** Version that the next start runs; null where the link is missing or odd. */
export function currentVersion(prefix: string): string | null {
  try {
    const name = basename(readlinkSync(join(prefix, 'current')));
    return VERSION.test(name) ? name : null;
  } catch {
    return null;
  }
}

/**
 * `current` is what the next start runs; `guard` is the version whose guard watches over a version on trial. Points it to a
 * version, which must be there.
 */
export function point(prefix: string, link: 'current' | 'guard', version: string): void {
  const draft = join(prefix, `.${link}-${process.pid}`);
  rmSync(draft, { force: true });
  symlinkSync(join('versions', version), draft);
  renameSync(draft, join(prefix, link));
}

/** Versions that are there as a whole: a folder gets its name only then. */
export function presentVersions(prefix: string): string[] {
  try {
    return readdirSync(versionsFolder(prefix)).filter((name) => VERSION.test(name));
  } catch {
    return [];
  }
}

/** Removes versions but those named, what broken-off updates left, and the archives. */
export function prune(prefix: string, keep: readonly string[]): void {
  for (const name of readdirSync(versionsFolder(prefix))) {
    if (keep.includes(name)) continue;
    // Under another name first: a version that can be seen is whole.
    const gone = join(versionsFolder(prefix), name.startsWith(DRAFT_PREFIX) ? name : `${DRAFT_PREFIX}${name}`);
    if (!name.startsWith(DRAFT_PREFIX)) renameSync(join(versionsFolder(prefix), name), gone);
    rmSync(gone, { recursive: true, force: true });
  }
  rmSync(downloadsFolder(prefix), { recursive: true, force: true });
}

export function makeFolders(prefix: string): void {
  mkdirSync(versionsFolder(prefix), { recursive: true });
  mkdirSync(downloadsFolder(prefix), { recursive: true, mode: 0o700 });
}
