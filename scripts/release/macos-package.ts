/**
 * `stageMacPackage`: writes the inputs of the macOS package, for `build-package.sh` on a Mac. The payload is the
 * darwin-arm64 archive; `build-package.sh` adds Node.js and the Swift programs.
 */
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { extract } from 'tar';
import { INSTALLER_FILE } from '../../apps/provider/src/update/installation.js';
import { ROOT } from './manifest.js';
import { archiveName } from './pack.js';

const SOURCES = join(ROOT, 'scripts/release/macos');
const LAUNCHER = '/usr/local/bin/inference-provider';

/** Writes `inference-provider-VERSION-macos` below `out`, which holds the archive. Returns the folder. Throws if the archive is missing. */
export async function stageMacPackage(out: string, version: string): Promise<string> {
  const archive = join(out, archiveName(version, 'darwin-arm64'));
  if (!existsSync(archive)) throw new Error(`${archive} is missing: run pack with --platform darwin-arm64 first`);
  const folder = join(out, `inference-provider-${version}-macos`);
  rmSync(folder, { recursive: true, force: true });
  const local = join(folder, 'payload/usr/local');
  mkdirSync(join(local, 'lib'), { recursive: true });
  await extract({ file: archive, cwd: join(local, 'lib') });
  renameSync(join(local, 'lib/package'), join(local, 'lib/inference-provider'));
  writeFileSync(join(local, 'lib/inference-provider', INSTALLER_FILE), `${JSON.stringify({ kind: 'pkg', launcher: LAUNCHER })}\n`);
  copyTo('launcher', join(local, 'bin/inference-provider'));
  for (const script of ['preinstall', 'postinstall']) copyTo(script, join(folder, 'scripts', script));
  copyTo('build-package.sh', join(folder, 'build-package.sh'));
  copyTo('entitlements.plist', join(folder, 'entitlements.plist'), 0o644);
  copyTo('conclusion.txt', join(folder, 'resources/conclusion.txt'), 0o644);
  cpSync(join(ROOT, 'LICENSE'), join(folder, 'resources/LICENSE.txt'));
  const distribution = readFileSync(join(SOURCES, 'distribution.xml'), 'utf8').replace('@VERSION@', version);
  writeFileSync(join(folder, 'distribution.xml'), distribution);
  writeFileSync(join(folder, 'release.env'), releaseEnvironment(version));
  return folder;
}

function copyTo(source: string, target: string, mode = 0o755): void {
  mkdirSync(join(target, '..'), { recursive: true });
  cpSync(join(SOURCES, source), target);
  chmodSync(target, mode);
}

/** Version of the package, and the Node that `install.sh` installs, with its hash. */
function releaseEnvironment(version: string): string {
  const installer = readFileSync(join(ROOT, 'scripts/install.sh'), 'utf8');
  const node = /^NODE_VERSION=(\d+\.\d+\.\d+)$/m.exec(installer)?.[1];
  const sha256 = /^\s*darwin-arm64\) echo ([0-9a-f]{64}) ;;$/m.exec(installer)?.[1];
  if (node === undefined || sha256 === undefined) throw new Error('scripts/install.sh names no Node for darwin-arm64');
  return `VERSION=${version}\nNODE_VERSION=${node}\nNODE_SHA256=${sha256}\n`;
}
