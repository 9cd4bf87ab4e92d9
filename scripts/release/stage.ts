/** `stage`: writes the agent's package into a folder: bundled programs, enclave helper, and a manifest with pinned dependencies. */
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { RELEASE_KEYS_FIELD } from '../../apps/provider/src/update/release-keys.js';
import { type Manifest, ROOT, readManifest, repositoryField, writeJson } from './manifest.js';
import { lockedClosure, readLock, unbundledDependencies, writeLockFile } from './shrinkwrap.js';

const WORKSPACE = 'apps/provider';
const PROVIDER = join(ROOT, WORKSPACE);
const ENCLAVE = join(ROOT, 'packages/enclave');

export interface StageOptions {
  /** Target folder; must not exist. */
  readonly folder: string;
  readonly version: string;
  /** Base64 of the Ed25519 keys whose releases this build accepts. An empty list disables updates. */
  readonly releaseKeys: readonly string[];
  readonly demoModels: boolean;
  /** Web address of the repository. npm's provenance requires the address of the building repository. */
  readonly repository?: string | undefined;
}

export function providerVersion(): string {
  return readManifest(PROVIDER).version;
}

/** Programs of the agent below `dist`: the command, the guard, and the entries named in the manifest. */
function programs(): string[] {
  const named = Object.values(readManifest(PROVIDER).imports).filter((path) => path.startsWith('./dist/'));
  return ['main.js', 'update/guard/main.js', ...named.map((path) => path.slice('./dist/'.length))];
}

/** Throws an Error if the programs are not built. */
export function stage(options: StageOptions): void {
  const { folder } = options;
  mkdirSync(folder, { recursive: true });
  copyBundles(join(PROVIDER, 'dist'), join(folder, 'dist'), programs());
  for (const part of ['bin', 'install', 'add-ons']) cpSync(join(PROVIDER, part), join(folder, part), { recursive: true });
  stageMenuBar(join(folder, 'menu-bar'));
  if (options.demoModels) cpSync(join(PROVIDER, 'demo-models'), join(folder, 'demo-models'), { recursive: true });
  cpSync(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'));
  cpSync(join(ROOT, 'docs/provider-guide.md'), join(folder, 'README.md'));
  stageEnclave(join(folder, 'node_modules/@inference/enclave'));

  const manifest = packageManifest(options);
  writeJson(join(folder, 'package.json'), manifest);
  writeShrinkwrap(folder, manifest);
}

/** Programs and shared chunks. Source maps are excluded, because they have four times the size of the code. */
export function copyBundles(from: string, to: string, programs: readonly string[]): void {
  for (const program of programs) {
    if (!existsSync(join(from, program))) throw new Error(`${join(from, program)} is not there: build first (npm run build)`);
    cpSync(join(from, program), join(to, program));
  }
  const chunks = join(from, 'chunks');
  if (existsSync(chunks)) cpSync(chunks, join(to, 'chunks'), { recursive: true, filter: (path) => !path.endsWith('.map') });
}

/** Sources of the menu bar item, and the program if built on this Mac. */
function stageMenuBar(folder: string): void {
  for (const part of ['Sources', 'build.sh', 'bin']) {
    const path = join(PROVIDER, 'menu-bar', part);
    if (existsSync(path)) cpSync(path, join(folder, part), { recursive: true });
  }
}

function stageEnclave(folder: string): void {
  copyBundles(join(ENCLAVE, 'dist'), join(folder, 'dist'), ['simulated/main.js']);
  const { name, version, license, type, exports } = readManifest(ENCLAVE) as unknown as Record<string, unknown>;
  const { '.': _, ...parts } = exports as Record<string, unknown>;
  writeJson(join(folder, 'package.json'), { name, version, license, type, exports: parts });
  // Includes a helper binary built on this Mac, if any.
  for (const part of ['Package.swift', 'Sources', 'build.sh', 'bin']) {
    const path = join(ENCLAVE, 'native', part);
    if (existsSync(path)) cpSync(path, join(folder, 'native', part), { recursive: true });
  }
}

function packageManifest({ version, releaseKeys, repository }: StageOptions): Manifest {
  const { name, description, license, type, engines, bin, imports, optionalDependencies = {} } = readManifest(PROVIDER);
  const enclave = readManifest(ENCLAVE).version;
  return {
    name,
    version,
    description,
    license,
    type,
    engines,
    ...repositoryField(repository),
    bin,
    imports,
    [RELEASE_KEYS_FIELD]: releaseKeys,
    scripts: { postinstall: 'node install/build-helper.mjs && node install/prune-engines.mjs' },
    dependencies: { '@inference/enclave': enclave, ...unbundledDependencies(WORKSPACE) },
    optionalDependencies,
    bundleDependencies: ['@inference/enclave'],
    // For `npm ci` in the package. Installed packages use the equivalent shrinkwrap.
    overrides: readManifest(ROOT).overrides,
  };
}

function writeShrinkwrap(folder: string, manifest: Manifest): void {
  const { name, version, license, engines, bin, dependencies, optionalDependencies = {}, bundleDependencies } = manifest;
  const root = { name, version, license, hasInstallScript: true, engines, bin, dependencies, optionalDependencies, bundleDependencies };
  const packages = {
    'node_modules/@inference/enclave': { version: dependencies['@inference/enclave'] ?? '', inBundle: true },
    ...lockedClosure(readLock(), WORKSPACE, [...Object.keys(unbundledDependencies(WORKSPACE)), ...Object.keys(optionalDependencies)]),
  };
  writeLockFile(join(folder, 'npm-shrinkwrap.json'), { root, packages });
}

/** Files below a folder, as relative paths in a stable order. */
export function filesBelow(folder: string, below = ''): string[] {
  return readdirSync(join(folder, below), { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = below === '' ? entry.name : `${below}/${entry.name}`;
      if (entry.isDirectory()) return filesBelow(folder, path);
      return entry.isFile() ? [path] : [];
    });
}

/** Sets the modes of all files to 0644, or 0755 for programs. Otherwise, archives would depend on the umask of the checkout. */
export function normalizeModes(folder: string): void {
  for (const path of filesBelow(folder)) {
    const file = join(folder, path);
    chmodSync(file, (statSync(file).mode & 0o100) === 0 ? 0o644 : 0o755);
  }
}
