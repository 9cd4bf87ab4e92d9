/**
 * How this very program came onto the machine, which decides who may replace it: an installation of our own has versions side
 * by side and updates itself, one by npm is npm's, and a clone of the repository is its owner's.
 */
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';

export type Installation =
  | { readonly kind: 'own'; readonly prefix: string; readonly version: string; readonly root: string }
  | { readonly kind: 'npm' | 'clone'; readonly version: string; readonly root: string };

/** `root`: folder of a package in place of this program's own. */
export function installation(root: string = dirname(createRequire(import.meta.url).resolve('#package.json'))): Installation {
  const real = realpathSync(root);
  const { version } = JSON.parse(readFileSync(join(real, 'package.json'), 'utf8')) as { version: string };
  const versions = dirname(real);
  const prefix = dirname(versions);
  if (basename(versions) === 'versions' && existsSync(launcherOf(prefix))) return { kind: 'own', prefix, version, root: real };
  return { kind: basename(versions) === 'node_modules' ? 'npm' : 'clone', version, root: real };
}

/** The script that starts whatever version is current. It is what the PATH and the service name. */
export function launcherOf(prefix: string): string {
  return join(prefix, 'bin', 'inference-provider');
}

/** Program and first arguments that start the agent as it is installed, and that stay right over updates. */
export function launchCommand(found: Installation = installation()): readonly string[] {
  if (found.kind === 'own') return [launcherOf(found.prefix)];
  return [process.execPath, join(found.root, 'bin', 'inference-provider.js')];
}
