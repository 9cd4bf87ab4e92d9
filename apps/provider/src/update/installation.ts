/** `installation`: kind of this installation, which decides who updates: this project's installer, npm, or a repository clone. */
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';

export type Installation =
  | { readonly kind: 'own'; readonly prefix: string; readonly version: string; readonly root: string }
  | { readonly kind: 'npm' | 'clone'; readonly version: string; readonly root: string };

/** `root`: folder of another package, for tests. */
export function installation(root: string = dirname(createRequire(import.meta.url).resolve('#package.json'))): Installation {
  const real = realpathSync(root);
  const { version } = JSON.parse(readFileSync(join(real, 'package.json'), 'utf8')) as { version: string };
  const versions = dirname(real);
  const prefix = dirname(versions);
  if (basename(versions) === 'versions' && existsSync(launcherOf(prefix))) return { kind: 'own', prefix, version, root: real };
  return { kind: basename(versions) === 'node_modules' ? 'npm' : 'clone', version, root: real };
}

/** Launcher script of the current version, named by the PATH link and the service. */
export function launcherOf(prefix: string): string {
  return join(prefix, 'bin', 'inference-provider');
}

/** Command line of the installed agent that stays valid over updates. */
export function launchCommand(found: Installation = installation()): readonly string[] {
  if (found.kind === 'own') return [launcherOf(found.prefix)];
  return [process.execPath, join(found.root, 'bin', 'inference-provider.js')];
}
