/** Subset of the repository's lock file for the packed agent, so that owners get the tested versions and hashes. */

export interface LockEntry {
  readonly name?: string;
  readonly version?: string;
  readonly link?: boolean;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly [member: string]: unknown;
}

export interface Lock {
  readonly packages: Readonly<Record<string, LockEntry>>;
}

/** Entries by path, such as `node_modules/sharp`. Throws on an unlocked package, or when two versions collide at one path. */
export function lockedClosure(lock: Lock, workspace: string, roots: readonly string[]): Record<string, LockEntry> {
  const entries: Record<string, LockEntry> = {};
  const waiting = roots.map((name) => ({ name, from: workspace, optional: false }));
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const found = resolveIn(lock, next.from, next.name);
    if (found === null) {
      if (next.optional) continue;
      throw new Error(`${next.name}, which ${next.from} needs, is not in the lock file`);
    }
    const entry = lock.packages[found] as LockEntry;
    const place = found.startsWith(`${workspace}/`) ? found.slice(workspace.length + 1) : found;
    if (entries[place] === entry) continue;
    if (entries[place] !== undefined) throw new Error(`two versions of ${place} are needed at one place`);
    const { dev: _, devOptional: __, ...kept } = entry;
    entries[place] = entry;
    for (const name of Object.keys(kept.dependencies ?? {})) waiting.push({ name, from: found, optional: next.optional });
    for (const name of Object.keys(kept.optionalDependencies ?? {})) waiting.push({ name, from: found, optional: true });
  }
  return Object.fromEntries(
    Object.entries(entries)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([place, { dev: _, devOptional: __, ...entry }]) => [place, entry]),
  );
}

/** Path where Node resolves a package from a folder: its own `node_modules` first, then those of parent folders. */
function resolveIn({ packages }: Lock, from: string, name: string): string | null {
  for (let folder = from; ; folder = folder.includes('/') ? folder.slice(0, folder.lastIndexOf('/')) : '') {
    const path = folder === '' ? `node_modules/${name}` : `${folder}/node_modules/${name}`;
    if (packages[path] !== undefined) return path;
    if (folder === '') return null;
  }
}
