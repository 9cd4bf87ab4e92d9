/** Extracts subsets of package-lock.json for packages, images and bills of materials, so that they have the tested versions and hashes. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ReleasePlatform } from '@inference/protocol';
import { INSTALLED } from '../bundle/options.mjs';
import { ROOT, readManifest, writeJson } from './manifest.js';

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

export function readLock(): Lock {
  return JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as Lock;
}

/** Dependencies that a workspace's programs need beside their bundles (`INSTALLED` in scripts/bundle), with their versions. */
export function unbundledDependencies(workspace: string): Record<string, string> {
  const { dependencies } = readManifest(join(ROOT, workspace));
  return Object.fromEntries(Object.entries(dependencies).filter(([name]) => INSTALLED.includes(name)));
}

export interface LockFileOptions {
  /** Members of the package's entry, copied from the manifest. */
  readonly root: Readonly<Record<string, unknown>> & { readonly name: string; readonly version: string };
  readonly packages: Readonly<Record<string, LockEntry>>;
}

/** Writes a lock file or a shrinkwrap; both have the same format. */
export function writeLockFile(path: string, { root, packages }: LockFileOptions): void {
  const { name, version } = root;
  writeJson(path, { name, version, lockfileVersion: 3, requires: true, packages: { '': root, ...packages } });
}

/** Folders of a workspace and of its workspace dependencies, which the bundles contain. */
export function usedWorkspaces(lock: Lock, workspace: string): readonly string[] {
  const found = new Set([workspace]);
  for (const member of found) {
    for (const dependency of Object.keys(readManifest(join(ROOT, member)).dependencies ?? {})) {
      if (isWorkspace(lock, dependency)) found.add(String(lock.packages[`node_modules/${dependency}`]?.resolved));
    }
  }
  return [...found];
}

export function isWorkspace(lock: Lock, name: string): boolean {
  return lock.packages[`node_modules/${name}`]?.link === true;
}

/** Lock entries of packages and their dependencies, by path. Throws if a package is not locked, or two versions have the same path. */
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
    entries[place] = entry;
    for (const name of Object.keys(entry.dependencies ?? {})) waiting.push({ name, from: found, optional: next.optional });
    for (const name of Object.keys(entry.optionalDependencies ?? {})) waiting.push({ name, from: found, optional: true });
  }
  return Object.fromEntries(
    Object.entries(entries)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([place, { dev: _, devOptional: __, ...entry }]) => [place, entry]),
  );
}

/** Path where Node resolves a package from a folder: the folder's `node_modules` first, then parent folders. */
function resolveIn({ packages }: Lock, from: string, name: string): string | null {
  for (let folder = from; ; folder = folder.includes('/') ? folder.slice(0, folder.lastIndexOf('/')) : '') {
    const path = folder === '' ? `node_modules/${name}` : `${folder}/node_modules/${name}`;
    if (packages[path] !== undefined) return path;
    if (folder === '') return null;
  }
}

/** Whether a package can be installed on a platform. On Linux: with glibc only, as in agents and images. */
export function admits({ os, cpu, libc }: LockEntry, platform: ReleasePlatform): boolean {
  const [system = '', processor = ''] = platform.split('-');
  const lists = (list: unknown, value: string): boolean => !Array.isArray(list) || list.includes(value);
  return lists(os, system) && lists(cpu, processor) && (system !== 'linux' || lists(libc, 'glibc'));
}
