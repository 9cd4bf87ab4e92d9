/** Packs the staged agent: an archive for npm, and one per platform with dependencies. Deterministic, because the hashes are signed. */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { ReleasePlatform } from '@inference/protocol';
import { create } from 'tar';
import { pruneEngines } from '../../apps/provider/install/prune-engines.mjs';
import { admits, type LockEntry } from './shrinkwrap.js';
import { filesBelow, normalizeModes } from './stage.js';

const EPOCH = new Date('2000-01-01T00:00:00Z');

/** Packs a folder's content under `package/`, as npm does. Skips symbolic links, of which the agent has none. */
export async function archive(folder: string, file: string): Promise<void> {
  normalizeModes(folder);
  const options = { file, cwd: folder, gzip: { level: 6 }, portable: true, mtime: EPOCH, prefix: 'package', noDirRecurse: true } as const;
  await create(options, filesBelow(folder));
}

/** Installs a staged package's shrinkwrapped dependencies for any platform, without install scripts, in a separate folder. */
export async function installDependencies(folder: string, platform: ReleasePlatform): Promise<void> {
  const beside = `${folder}-dependencies`;
  mkdirSync(beside);
  const read = (name: string) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as Manifest & { packages: Record<string, LockEntry> };
  const { name, version, overrides, dependencies, optionalDependencies } = read('package.json');
  const own = { name, version, overrides, dependencies: withoutEnclave(dependencies), optionalDependencies };
  const { packages, ...lock } = read('npm-shrinkwrap.json');
  const { [`node_modules/${ENCLAVE}`]: _, ...others } = packages;
  writeFileSync(join(beside, 'package.json'), JSON.stringify(own));
  writeFileSync(join(beside, 'package-lock.json'), JSON.stringify({ ...lock, packages: { ...others, '': own } }));

  requireHashes(packages, platform);
  const [os, cpu] = platform.split('-');
  const libc = os === 'linux' ? ['--libc=glibc'] : [];
  const args = ['ci', '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--no-bin-links', `--os=${os}`, `--cpu=${cpu}`, ...libc];
  await promisify(execFile)('npm', args, { cwd: beside, maxBuffer: 64 << 20 });
  requireEngines(join(beside, 'node_modules'), platform);
  pruneEngines(join(beside, 'node_modules'), os as string, cpu as string);
  for (const entry of readdirSync(join(beside, 'node_modules'))) {
    if (!entry.startsWith('.')) renameSync(join(beside, 'node_modules', entry), join(folder, 'node_modules', entry));
  }
}

/** Required native packages by platform. npm treats them as optional dependencies, and omits missing ones without an error. */
const ENGINES: Readonly<Record<ReleasePlatform, readonly string[]>> = {
  'darwin-arm64': enginesOf('darwin-arm64', 'mac-arm64-metal'),
  'linux-x64': enginesOf('linux-x64', 'linux-x64'),
  'linux-arm64': enginesOf('linux-arm64', 'linux-arm64'),
};

function enginesOf(platform: ReleasePlatform, nodeLlama: string): readonly string[] {
  const ofPlatform = ['@img/sharp', '@fugood/node-llama', '@koromix/koffi'].map((name) => `${name}-${platform}`);
  return [`@node-llama-cpp/${nodeLlama}`, ...ofPlatform];
}

function requireEngines(modules: string, platform: ReleasePlatform): void {
  for (const name of ENGINES[platform]) {
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
