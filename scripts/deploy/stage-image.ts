/**
 * Writes what a container image contains into a folder, after the build: `tsx scripts/deploy/stage-image.ts coordinator|agent FOLDER`.
 *
 * `FOLDER/app` gets the bundled programs, and a manifest and lock file of the packages that are not bundled. Those of the coordinator
 * are left to `npm ci`, because one is compiled.
 * `FOLDER/sbom/NAME` gets a manifest and lock file of every package of the image, bundled ones included, for `npm sbom`.
 */
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { BUNDLE } from '../bundle/options.mjs';
import { installDependencies } from '../release/archive.js';
import { type Lock, type LockEntry, lockedClosure } from '../release/shrinkwrap.js';
import { providerVersion, ROOT, stage } from '../release/stage.js';

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly imports: Readonly<Record<string, string>>;
  readonly bin?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly [member: string]: unknown;
}

const IMAGES = { coordinator: stageCoordinator, agent: stageAgent } as const;

const [image = '', folder = ''] = process.argv.slice(2);
const stageImage = Object.hasOwn(IMAGES, image) ? IMAGES[image as keyof typeof IMAGES] : null;
if (stageImage === null || folder === '' || existsSync(folder)) {
  process.stderr.write('usage: stage-image.ts coordinator|agent FOLDER\n\nFOLDER must not exist.\n');
  process.exit(2);
}
await stageImage(join(folder, 'app'));
writeSbomLock(image === 'agent' ? 'apps/provider' : 'apps/coordinator', join(folder, 'sbom'));

function stageCoordinator(app: string): void {
  const workspace = 'apps/coordinator';
  const { name, version, description, license, type, engines, bin, imports, dependencies = {} } = manifestOf(workspace);
  const programs = ['dist/main.js', ...Object.values(imports).filter((path) => path.startsWith('./dist/'))];
  for (const program of programs) copyBuilt(join(workspace, program), join(app, program));
  cpSync(join(ROOT, workspace, 'dist/chunks'), join(app, 'dist/chunks'), { recursive: true, filter: (path) => !path.endsWith('.map') });
  cpSync(join(ROOT, workspace, 'bin'), join(app, 'bin'), { recursive: true });
  linkCommands(app, bin);
  cpSync(join(ROOT, 'LICENSE'), join(app, 'LICENSE'));
  copyBuilt('apps/console/dist', join(app, 'console'));
  const unbundled = Object.fromEntries(Object.entries(dependencies).filter(([dependency]) => BUNDLE.external?.includes(dependency)));
  const packages = lockedClosure(lockFile(), workspace, Object.keys(unbundled));
  writePackage(app, { name, version, description, license, type, engines, bin, imports, dependencies: unbundled }, packages);
}

/** The same package that owners install on Linux, with its dependencies. Updates are new images, so that it accepts no release. */
async function stageAgent(app: string): Promise<void> {
  stage({ folder: app, version: providerVersion(), releaseKeys: [], demoModels: true });
  await installDependencies(app, process.arch === 'arm64' ? 'linux-arm64' : 'linux-x64');
  linkCommands(app, manifestOf('apps/provider').bin);
}

/** Links commands by their names beside their files, for a PATH that contains `app/bin`. */
function linkCommands(app: string, bin: Manifest['bin']): void {
  for (const [command, file] of Object.entries(bin ?? {})) symlinkSync(basename(file), join(app, dirname(file), command));
}

/** Every production package of a workspace and of the workspaces that it uses, without those for other platforms. */
function writeSbomLock(workspace: string, folder: string): void {
  const lock = lockFile();
  const dependencies: Record<string, string> = {};
  const packages: Record<string, LockEntry> = {};
  for (const member of usedWorkspaces(lock, workspace)) {
    const { dependencies: required, optionalDependencies: optional } = manifestOf(member);
    const own = Object.entries({ ...required, ...optional }).filter(([name]) => !name.startsWith('@inference/'));
    Object.assign(dependencies, Object.fromEntries(own));
    const names = own.map(([name]) => name);
    const forThisPlatform = Object.entries(lockedClosure(lock, member, names)).filter(([, entry]) => isForThisPlatform(entry));
    Object.assign(packages, Object.fromEntries(forThisPlatform));
  }
  const { name, version, license } = manifestOf(workspace);
  // npm names the document's subject after the folder.
  writePackage(join(folder, basename(name)), { name, version, license, dependencies, overrides: manifestOf('.').overrides }, packages);
}

/** Paths of a workspace and of the workspaces that it depends on. */
function usedWorkspaces(lock: Lock, workspace: string): readonly string[] {
  const found = new Set([workspace]);
  for (const member of found) {
    for (const name of Object.keys(manifestOf(member).dependencies ?? {})) {
      const entry = lock.packages[`node_modules/${name}`];
      if (entry?.link === true) found.add(String(entry.resolved));
    }
  }
  return [...found];
}

/** Images contain Linux packages with glibc for the processor of the build. */
function isForThisPlatform({ os, cpu, libc }: LockEntry): boolean {
  const allows = (list: unknown, value: string): boolean => !Array.isArray(list) || list.includes(value);
  return allows(os, 'linux') && allows(cpu, process.arch) && allows(libc, 'glibc');
}

function writePackage(folder: string, manifest: Readonly<Record<string, unknown>>, packages: Readonly<Record<string, LockEntry>>): void {
  mkdirSync(folder, { recursive: true });
  writeJson(join(folder, 'package.json'), { ...manifest, private: true });
  const { name, version, license, engines, bin, dependencies } = manifest;
  const root = { name, version, license, engines, bin, dependencies };
  writeJson(join(folder, 'package-lock.json'), { name, version, lockfileVersion: 3, requires: true, packages: { '': root, ...packages } });
}

function copyBuilt(from: string, to: string): void {
  if (!existsSync(join(ROOT, from))) throw new Error(`${from} is not there: build first (npm run build)`);
  cpSync(join(ROOT, from), to, { recursive: true });
}

function lockFile(): Lock {
  return JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as Lock;
}

function manifestOf(workspace: string): Manifest {
  return JSON.parse(readFileSync(join(ROOT, workspace, 'package.json'), 'utf8')) as Manifest;
}

function writeJson(path: string, value: unknown): void {
  writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`);
}
