/**
 * `prepare` downloads a signed release, unpacks it next to the installed versions, and tests whether it starts.
 *
 * Only complete versions get their final folder name.
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { compareVersions, type Release } from '@inference/protocol';
import type { ReadEntry } from 'tar';
import { download } from '../models/store/download.js';
import { DownloadError, type Progress, type Tuning } from '../models/store/transfer.js';
import { DRAFT_PREFIX, downloadsFolder, makeFolders, presentVersions, versionFolder, versionsFolder } from './layout.js';
import { UpdateError } from './releases.js';

interface PrepareOptions {
  readonly prefix: string;
  readonly release: Release;
  readonly onStep: (sentence: string) => void;
  readonly onProgress: (progress: Progress) => void;
  readonly signal: AbortSignal;
  readonly tuning?: Partial<Tuning>;
}

const BUILD_MS = 10 * 60_000;
const START_MS = 60_000;

/** Does nothing if the version is present. Throws {@link UpdateError}, or the signal's reason. */
export async function prepare(options: PrepareOptions): Promise<void> {
  const { prefix, release, onStep, signal } = options;
  if (presentVersions(prefix).includes(release.version)) return;
  if (compareVersions(release.node, process.versions.node) > 0) {
    throw new UpdateError(
      `version ${release.version} needs Node ${release.node}, but this is ${process.versions.node}: run install.sh again`,
    );
  }
  makeFolders(prefix);
  for (const name of readdirSync(versionsFolder(prefix))) {
    if (name.startsWith(DRAFT_PREFIX)) rmSync(join(versionsFolder(prefix), name), { recursive: true, force: true });
  }
  onStep(`Downloading version ${release.version}`);
  const file = await fetchArchive(options);
  signal.throwIfAborted();
  onStep('Unpacking');
  const draft = join(versionsFolder(prefix), `${DRAFT_PREFIX}${process.pid}`);
  try {
    await unpack(file, draft);
    signal.throwIfAborted();
    requireIdentity(draft, release);
    onStep('Test start');
    await tryOut(draft, release, signal);
    // Flushes the disk before any link points to the version, against power loss.
    await promisify(execFile)('sync', [], { timeout: BUILD_MS });
    renameSync(draft, versionFolder(prefix, release.version));
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
  rmSync(file, { force: true });
}

async function fetchArchive({ prefix, release, onProgress, signal, tuning }: PrepareOptions): Promise<string> {
  const file = join(downloadsFolder(prefix), `${release.sha256}.tgz`);
  // Partial downloads of other releases are not resumed.
  for (const name of readdirSync(downloadsFolder(prefix))) {
    if (!name.startsWith(release.sha256)) rmSync(join(downloadsFolder(prefix), name), { force: true });
  }
  try {
    const { url, size: bytes, sha256 } = release;
    await download({ url, redirect: 'manual', file, bytes, sha256, onProgress, signal, ...(tuning === undefined ? {} : { tuning }) });
    return file;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof DownloadError) throw new UpdateError(`version ${release.version} was not downloaded: ${error.message}`, true);
    if ((error as NodeJS.ErrnoException).code === 'ENOSPC') throw new UpdateError('the disk is full; free some space and try again');
    throw error;
  }
}

function requireIdentity(folder: string, { version }: Release): void {
  let found: { name?: unknown; version?: unknown } | null = null;
  try {
    found = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { name?: unknown; version?: unknown };
  } catch {}
  if (found?.name !== 'inference-provider' || found.version !== version) {
    throw new UpdateError(`the archive of version ${version} has unexpected contents`);
  }
}

/** Builds the enclave helper, if the release has one, and runs the program with `--version`. */
async function tryOut(folder: string, { version }: Release, signal: AbortSignal): Promise<void> {
  const run = promisify(execFile);
  const build = join(folder, 'install', 'build-helper.mjs');
  try {
    if (existsSync(build)) await run(process.execPath, [build, '--strict'], { timeout: BUILD_MS, signal });
  } catch {
    signal.throwIfAborted();
    throw new UpdateError(`the enclave helper of version ${version} cannot be built here: run xcode-select --install, then update again`);
  }
  const program = join(folder, 'bin', 'inference-provider.js');
  const result = await run(process.execPath, [program, '--version'], { timeout: START_MS, signal }).catch(() => null);
  signal.throwIfAborted();
  if (result?.stdout.trim() !== version) throw new UpdateError(`version ${version} does not start on this machine`);
}

const MAX_UNPACKED_FILES = 100_000;
const MAX_UNPACKED_BYTES = 8 * 2 ** 30;
/** As in packages of npm. */
const TOP = 'package/';

/**
 * Unpacks a release archive, after checking that all entries are plain files and folders below `package/`. Throws {@link UpdateError} for
 * an invalid entry, before anything is written.
 */
async function unpack(archive: string, folder: string): Promise<void> {
  await inspect(archive);
  mkdirSync(folder, { recursive: true });
  const { extract } = await import('tar');
  try {
    await extract({ file: archive, cwd: folder, strip: 1, strict: true, noMtime: true, filter: (path) => path.startsWith(TOP) });
  } catch (error) {
    const full = (error as NodeJS.ErrnoException).code === 'ENOSPC';
    throw new UpdateError(full ? 'the disk is full; free some space and try again' : 'the archive of the release cannot be unpacked');
  }
}

async function inspect(archive: string): Promise<void> {
  let files = 0;
  let bytes = 0;
  let bad: string | null = null;
  const inspectEntry = (entry: ReadEntry): void => {
    files++;
    bytes += entry.size;
    bad ??= problemOf(entry);
    entry.resume();
  };
  // Loaded on demand, because most commands unpack nothing.
  const { list } = await import('tar');
  try {
    await list({ file: archive, strict: true, onReadEntry: inspectEntry });
  } catch {
    throw new UpdateError('the archive of the release cannot be read');
  }
  if (files > MAX_UNPACKED_FILES || bytes > MAX_UNPACKED_BYTES) bad ??= 'too large';
  if (files === 0) bad ??= 'empty';
  if (bad !== null) throw new UpdateError(`the archive of the release is invalid: ${bad}`);
}

function problemOf({ path, type }: ReadEntry): string | null {
  if (type !== 'File' && type !== 'OldFile' && type !== 'ContiguousFile' && type !== 'Directory') return `contains a ${type}`;
  const inside = path.startsWith(TOP) && !path.split('/').includes('..') && !path.includes('\\') && !path.includes('\0');
  return inside ? null : 'contains a path outside its folder';
}
