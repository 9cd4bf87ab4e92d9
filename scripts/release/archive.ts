/** Packs a staged package as an archive, and installs the agent's dependencies. Deterministic, because hashes are signed. */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { ReleasePlatform } from '@inference/protocol';
import { create } from 'tar';
import { pruneEngines } from '../../apps/provider/install/prune-engines.mjs';
import { admits, type LockEntry } from './shrinkwrap.js';
import { filesBelow, normalizeModes } from './stage.js';

/** Modification time of every archived file. */
const MODIFIED_AT = new Date('2000-01-01T00:00:00Z');

/** Packs a folder's content under `package/`, as npm does. Skips symbolic links. */
export async function archive(folder: string, file: string): Promise<void> {
  normalizeModes(folder);
  const options = {
    file,
    cwd: folder,
    gzip: { level: 6 },
    portable: true,
    mtime: MODIFIED_AT,
    prefix: 'package',
    noDirRecurse: true,
  } as const;
  await create(options, filesBelow(folder));
}

/** Installs the shrinkwrapped dependencies of the staged agent for `platform`, without running install scripts. */
export async function installDependencies(folder: string, platform: ReleasePlatform): Promise<void> {
  const installFolder = `${folder}-dependencies`;
  mkdirSync(installFolder);
  const read = (name: string) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as Manifest & { packages: Record<string, LockEntry> };
  const { name, version, overrides, dependencies, optionalDependencies } = read('package.json');
  const own = { name, version, overrides, dependencies: withoutEnclave(dependencies), optionalDependencies };
  const { packages, ...lock } = read('npm-shrinkwrap.json');
  const { [`node_modules/${ENCLAVE}`]: _, ...others } = packages;
  writeFileSync(join(installFolder, 'package.json'), JSON.stringify(own));
  writeFileSync(join(installFolder, 'package-lock.json'), JSON.stringify({ ...lock, packages: { ...others, '': own } }));

  requireHashes(packages, platform);
  const [os, cpu] = platform.split('-');
  const libc = os === 'linux' ? ['--libc=glibc'] : [];
  const args = ['ci', '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--no-bin-links', `--os=${os}`, `--cpu=${cpu}`, ...libc];
  await promisify(execFile)('npm', args, { cwd: installFolder, maxBuffer: 64 << 20 });
  requireNativePackages(join(installFolder, 'node_modules'), platform);
  pruneEngines(join(installFolder, 'node_modules'), os as string, cpu as string);
  for (const entry of readdirSync(join(installFolder, 'node_modules'))) {
    if (!entry.startsWith('.')) renameSync(join(installFolder, 'node_modules', entry), join(folder, 'node_modules', entry));
  }
}

/** Required native packages by platform. npm treats them as optional dependencies, and omits missing ones without an error. */
const NATIVE_PACKAGES: Readonly<Record<ReleasePlatform, readonly string[]>> = {
  'darwin-arm64': nativePackagesOf('darwin-arm64', 'mac-arm64-metal'),
  'linux-x64': nativePackagesOf('linux-x64', 'linux-x64'),
  'linux-arm64': nativePackagesOf('linux-arm64', 'linux-arm64'),
};

function nativePackagesOf(platform: ReleasePlatform, nodeLlama: string): readonly string[] {
  const ofPlatform = ['@img/sharp', '@fugood/node-llama', '@koromix/koffi'].map((name) => `${name}-${platform}`);
  return [`@node-llama-cpp/${nodeLlama}`, ...ofPlatform];
}

function requireNativePackages(modules: string, platform: ReleasePlatform): void {
  for (const name of NATIVE_PACKAGES[platform]) {
    if (!existsSync(join(modules, name)))
      throw new Error(`npm did not install ${name}, without which the agent cannot serve on ${platform}`);
  }
}

/** Throws when a package for this platform has no hash in the lock file: npm would accept any bytes. */
export function requireHashes(packages: Readonly<Record<string, LockEntry>>, platform: ReleasePlatform): void {
  const without = Object.entries(packages)
    .filter(([path, entry]) => path !== '' && entry.inBundle !== true && admits(entry, platform))
    .filter(([, { integrity }]) => typeof integrity !== 'string' || integrity === '')
    .map(([path]) => path);
  if (without.length > 0) {
    throw new Error(
      `the lock file has no hash of ${without.join(', ')}, which ${platform} installs; run npm install against a registry that has it`,
    );
  }
}

const ENCLAVE = '@inference/enclave';

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly overrides?: object;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
}

function withoutEnclave({ [ENCLAVE]: _, ...others }: Manifest['dependencies']): Record<string, string> {
  return others;
}
