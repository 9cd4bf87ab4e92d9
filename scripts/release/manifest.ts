/** Reads and writes package.json files of the repository and of built packages. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = resolve(fileURLToPath(new URL('../..', import.meta.url)));

export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly imports: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  /** Platform-specific packages, which are never bundled. */
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly [member: string]: unknown;
}

export function readManifest(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
}

export function writeJson(path: string, value: unknown): void {
  writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`);
}

export function repositoryField(address: string | undefined): { readonly repository?: { readonly type: 'git'; readonly url: string } } {
  return address === undefined ? {} : { repository: { type: 'git', url: `git+${address}.git` } };
}
