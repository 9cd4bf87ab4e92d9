/**
 * `findOrBuildPeer`: llama.cpp's own server, which the engine bench compares with the agent.
 *
 * Uses the program that `LLAMA_SERVER` names, or builds one in minutes and keeps it. Only the server's own sources are compiled. The
 * libraries are those of the package node-llama-cpp, so that both programs compute with the same code.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const CMAKE_FILES = fileURLToPath(new URL('./server', import.meta.url));
const PACKAGE = 'node-llama-cpp';
/** Sources inside the package. scripts/prune-packages.mjs deletes them from node_modules. */
const BUNDLE = 'package/llama/gitRelease.bundle';
const DOWNLOAD_MS = 5 * 60_000;
const BUILD_MS = 60 * 60_000;

export interface PeerProgram {
  readonly path: string;
  /** Folder of the libraries that the program needs. Null for `LLAMA_SERVER`, which finds its own. */
  readonly libraries: string | null;
}

export interface LockedPackage {
  readonly version: string;
  readonly integrity: string;
}

/** Throws if no program is named and the build fails. A build needs Linux, npm, git, cmake and a C++ compiler. */
export function findOrBuildPeer(): PeerProgram {
  const { LLAMA_SERVER: named, XDG_CACHE_HOME: cache = join(homedir(), '.cache') } = process.env;
  if (named !== undefined) return { path: named, libraries: null };
  if (process.platform !== 'linux') throw new Error('the server is only built on Linux; name one of the same release in LLAMA_SERVER');
  const { release, libraries } = findLibraries();
  const directory = join(cache, 'inference-bench', `llama.cpp-${release}`);
  const path = join(directory, 'llama-server');
  if (!existsSync(path)) {
    console.log(`building llama.cpp's server ${release} in ${directory}`);
    mkdirSync(directory, { recursive: true });
    const source = join(directory, 'source');
    if (!existsSync(source)) fetchSources(directory, source);
    build(directory, source, { release, libraries });
    copyFileSync(join(directory, 'build', 'tools', 'server', 'llama-server'), `${path}.new`);
    renameSync(`${path}.new`, path);
  }
  return { path, libraries };
}

function findLibraries(): { readonly release: string; readonly libraries: string } {
  const platform = `${process.platform}-${process.arch}`;
  const libraries = join(ROOT, 'node_modules/@node-llama-cpp', platform, 'bins', platform);
  const metadata = JSON.parse(readFileSync(join(libraries, '_nlcBuildMetadata.json'), 'utf8'));
  const { tag } = JSON.parse(readFileSync(join(ROOT, 'node_modules', PACKAGE, 'llama/llama.cpp.info.json'), 'utf8'));
  const release: unknown = metadata.buildOptions?.llamaCpp?.release;
  if (typeof tag !== 'string' || release !== tag) throw new Error(`the libraries are of llama.cpp ${release}, the sources of ${tag}`);
  return { release: tag, libraries };
}

function fetchSources(directory: string, source: string): void {
  const locked = lockedPackage(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'), PACKAGE);
  const tarball = join(directory, tarballName(PACKAGE, locked));
  const run = (command: string, args: readonly string[]) =>
    execFileSync(command, args, { cwd: directory, stdio: ['ignore', 'ignore', 'inherit'], timeout: DOWNLOAD_MS });
  run('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', directory, `${PACKAGE}@${locked.version}`]);
  if (!hasIntegrity(readFileSync(tarball), locked.integrity)) throw new Error(`${tarball} is not the locked package`);
  run('tar', ['-xzf', tarball, BUNDLE]);
  rmSync(`${source}.new`, { recursive: true, force: true });
  run('git', ['-c', 'advice.detachedHead=false', 'clone', '--quiet', join(directory, BUNDLE), `${source}.new`]);
  renameSync(`${source}.new`, source);
  rmSync(tarball);
  rmSync(join(directory, 'package'), { recursive: true });
}

function build(directory: string, source: string, { release, libraries }: { release: string; libraries: string }): void {
  const run = (args: readonly string[]) =>
    execFileSync('cmake', args, { cwd: directory, stdio: ['ignore', 'ignore', 'inherit'], timeout: BUILD_MS });
  // CMake refuses a build folder of other sources, such as another checkout's.
  rmSync(join(directory, 'build'), { recursive: true, force: true });
  run([
    ...['-S', CMAKE_FILES, '-B', 'build', '-DCMAKE_BUILD_TYPE=Release'],
    ...[`-DLLAMA_SOURCE=${source}`, `-DLLAMA_LIBRARIES=${libraries}`, `-DLLAMA_VARIANT=${release}`],
  ]);
  run(['--build', 'build', '--target', 'llama-server', '-j2']);
}

/** Version and integrity that a lock file pins. Throws if it has none, or a weaker hash than SHA-512. */
export function lockedPackage(lockFile: string, name: string): LockedPackage {
  const { packages } = JSON.parse(lockFile) as { packages?: Record<string, Partial<LockedPackage>> };
  const { version, integrity } = packages?.[`node_modules/${name}`] ?? {};
  if (version === undefined || integrity === undefined) throw new Error(`the lock file has no ${name}`);
  if (!integrity.startsWith('sha512-')) throw new Error(`the lock file has no SHA-512 of ${name}`);
  return { version, integrity };
}

/** File name that `npm pack` gives the tarball of a package without a scope. */
export function tarballName(name: string, { version }: LockedPackage): string {
  return `${name}-${version}.tgz`;
}

export function hasIntegrity(bytes: Uint8Array, integrity: string): boolean {
  return integrity === `sha512-${createHash('sha512').update(bytes).digest('base64')}`;
}
