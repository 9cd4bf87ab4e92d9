/**
 * `installation` detects how the agent was installed: by this project's installer, Homebrew, a macOS package, npm, or as a clone.
 *
 * The kind decides whether the agent updates itself.
 */
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { lazyValidator } from '@inference/protocol';
import Type from 'typebox';

export type Installation =
  /** By `install.sh`. `prefix`: folder of all versions and the launcher. */
  | { readonly kind: 'own'; readonly prefix: string; readonly version: string; readonly root: string }
  /** `launcher` is a command outside the versioned files, unchanged by updates. */
  | { readonly kind: 'homebrew' | 'pkg'; readonly launcher: string; readonly version: string; readonly root: string }
  | { readonly kind: 'npm' | 'clone'; readonly version: string; readonly root: string };

/** File that Homebrew and the macOS package put next to `package.json`. */
export const INSTALLER_FILE = 'installer.json';

const installer = lazyValidator(Type.Object({ kind: Type.Enum(['homebrew', 'pkg']), launcher: Type.String({ pattern: '^/' }) }));

/** Tests pass another `root`, the folder of a package. */
export function installation(root: string = dirname(createRequire(import.meta.url).resolve('#package.json'))): Installation {
  const real = realpathSync(root);
  const { version } = JSON.parse(readFileSync(join(real, 'package.json'), 'utf8')) as { version: string };
  const managed = installerOf(real);
  if (managed !== null) return { ...managed, version, root: real };
  const versions = dirname(real);
  const prefix = dirname(versions);
  if (basename(versions) === 'versions' && existsSync(launcherOf(prefix))) return { kind: 'own', prefix, version, root: real };
  return { kind: basename(versions) === 'node_modules' ? 'npm' : 'clone', version, root: real };
}

/** A damaged file is an error, because the owner would otherwise get the advice for another installer. */
function installerOf(root: string): { readonly kind: 'homebrew' | 'pkg'; readonly launcher: string } | null {
  const path = join(root, INSTALLER_FILE);
  if (!existsSync(path)) return null;
  const value: unknown = JSON.parse(readFileSync(path, 'utf8'));
  if (!installer().Check(value)) throw new Error(`${path} is not valid; install the agent again`);
  return { kind: value.kind, launcher: value.launcher };
}

/** Launcher script of the current version, named by the PATH link and the service. */
export function launcherOf(prefix: string): string {
  return join(prefix, 'bin', 'inference-provider');
}

/** Command line of the installed agent that stays valid after updates. */
export function launchCommand(found: Installation = installation()): readonly string[] {
  const stable = launcher(found);
  return stable === null ? [process.execPath, join(found.root, 'bin', 'inference-provider.js')] : [stable];
}

/** Launcher that stays valid after updates, or null. */
export function launcher(found: Installation): string | null {
  if (found.kind === 'own') return launcherOf(found.prefix);
  return found.kind === 'homebrew' || found.kind === 'pkg' ? found.launcher : null;
}

/** Instructions to update an installation of another installer; null if the agent updates itself. */
export function updateAdvice({ kind }: Installation): string | null {
  switch (kind) {
    case 'own':
      return null;
    case 'homebrew':
      return 'Homebrew manages this installation. Run: brew upgrade inference-provider, then: inference-provider restart';
    case 'pkg':
      return "Install the newer package from your coordinator's operator. The package restarts the provider.";
    case 'npm':
      return 'npm manages this installation. Run: npm install -g --allow-scripts=inference-provider inference-provider@latest, then: inference-provider restart';
    case 'clone':
      return 'The agent runs from a clone of its sources. Run there: git pull, npm ci, npm run build, then: inference-provider restart';
    default:
      return kind satisfies never;
  }
}

/** Instructions to remove the program; null if `uninstall` does. */
export function removalAdvice(found: Installation): string | null {
  switch (found.kind) {
    case 'own':
      return null;
    case 'homebrew':
      return 'To remove the program: brew uninstall inference-provider';
    case 'pkg':
      return `To remove the program: sudo rm -rf ${found.root} ${found.launcher} && sudo pkgutil --forget inference-provider`;
    case 'npm':
      return 'To remove the program: npm uninstall -g inference-provider';
    case 'clone':
      return `The agent runs from a clone of its sources, which is not removed: ${found.root}`;
    default:
      return found satisfies never;
  }
}
