/** Packs `@inference/client` with bundled workspace packages: `npm run client-package -- <folder>`, after `npm run build`. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { repositoryField } from './release/manifest.js';
import { normalizeModes } from './release/stage.js';

const PACKAGES = fileURLToPath(new URL('../packages', import.meta.url));
const CLIENT_FILES = ['bin', 'dist', 'examples', 'README.md'];
const SCOPE = '@inference/';
/** Path in the archive of the program that starts the bundled verifier. */
const VERIFIER_PROGRAM = 'bin/inference-verify.js';

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly bin?: Readonly<Record<string, string>>;
  readonly [member: string]: unknown;
}

interface ClientPackageOptions {
  /** Default: the version in packages/client/package.json. */
  readonly version?: string;
  readonly repository?: string | undefined;
}

/** Writes the archive into a folder, and returns its path. Throws when npm fails or a package is not built. */
export function packClient(folder: string, options: ClientPackageOptions = {}): string {
  const stage = mkdtempSync(join(tmpdir(), 'inference-client-'));
  try {
    const client = manifestOf('client');
    const bundled = bundledPackages(client);
    for (const name of bundled) {
      const target = join(stage, 'node_modules', SCOPE, name);
      mkdirSync(target, { recursive: true });
      copyBuild(join(PACKAGES, name), target);
      const { name: fullName, version, type, exports } = manifestOf(name);
      writeJson(join(target, 'package.json'), { name: fullName, version, type, exports });
    }
    for (const file of CLIENT_FILES) cpSync(join(PACKAGES, 'client', file), join(stage, file), { recursive: true, filter: isShipped });
    writeFileSync(join(stage, VERIFIER_PROGRAM), `#!/usr/bin/env node\nimport '../node_modules/${SCOPE}verifier/dist/cli/main.js';\n`, {
      mode: 0o755,
    });
    const { private: _private, scripts: _scripts, devDependencies: _devDependencies, files: _files, ...published } = client;
    writeJson(join(stage, 'package.json'), {
      ...published,
      version: options.version ?? client.version,
      ...repositoryField(options.repository),
      bin: { ...published.bin, 'inference-verify': VERIFIER_PROGRAM },
      files: CLIENT_FILES,
      dependencies: { ...externalDependencies(['client', ...bundled]), ...bundledDependencies(bundled) },
      bundleDependencies: bundled.map((name) => SCOPE + name),
    });
    mkdirSync(folder, { recursive: true });
    normalizeModes(stage);
    const output = execFileSync('npm', ['pack', '--json', '--pack-destination', resolve(folder)], { cwd: stage, encoding: 'utf8' });
    const [archive] = JSON.parse(output) as [{ readonly filename: string }];
    return join(resolve(folder), archive.filename);
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
}

/** Workspace packages that a manifest depends on, directly or not, without their scope. */
function bundledPackages(manifest: Manifest, found = new Set<string>()): string[] {
  for (const dependency of Object.keys(manifest.dependencies ?? {}).filter((name) => name.startsWith(SCOPE))) {
    const name = dependency.slice(SCOPE.length);
    if (found.has(name)) continue;
    found.add(name);
    bundledPackages(manifestOf(name), found);
  }
  return [...found].sort();
}

function bundledDependencies(names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [SCOPE + name, manifestOf(name).version]));
}

function externalDependencies(names: readonly string[]): Record<string, string> {
  const entries = names.flatMap((name) => Object.entries(manifestOf(name).dependencies ?? {}));
  return Object.fromEntries(entries.filter(([name]) => !name.startsWith(SCOPE)).sort());
}

function copyBuild(from: string, to: string): void {
  cpSync(join(from, 'dist'), join(to, 'dist'), { recursive: true, filter: isShipped });
}

/** Excludes source maps, because their sources are not in the archive. */
function isShipped(path: string): boolean {
  return !/\.map$|\.tsbuildinfo$/.test(path);
}

function manifestOf(name: string): Manifest {
  return JSON.parse(readFileSync(join(PACKAGES, name, 'package.json'), 'utf8')) as Manifest;
}

function writeJson(path: string, value: unknown): void {
  writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`);
}

const [, program, folder] = process.argv;
if (program === fileURLToPath(import.meta.url)) {
  if (folder === undefined) throw new Error('usage: npm run client-package -- <folder>');
  console.log(packClient(folder));
}
