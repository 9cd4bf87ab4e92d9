/** `sbomOf`: software bill of materials of a program (CycloneDX, made by npm). Lists all production packages, bundled or not. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import type { ReleasePlatform } from '@inference/protocol';
import { ROOT, readManifest, writeJson } from './manifest.js';
import { admits, isWorkspace, type LockEntry, lockedClosure, readLock, usedWorkspaces, writeLockFile } from './shrinkwrap.js';

interface Bom {
  readonly serialNumber?: string;
  readonly metadata: { readonly timestamp?: string; readonly component: { readonly name: string } };
  readonly components: readonly { readonly name: string; readonly version: string }[];
}

export interface SbomOptions {
  /** Folder of the program, such as `apps/provider`. */
  readonly workspace: string;
  readonly name: string;
  readonly version: string;
  /** Time in the document. Reproducible builds use the time of the commit. */
  readonly createdAt: Date;
  /** Omits packages for other platforms. Default: all platforms. */
  readonly platform?: ReleasePlatform;
}

/** CycloneDX document as JSON text. Deterministic: the serial number is a hash of the content. Rejects if npm fails. */
export async function sbomOf(options: SbomOptions): Promise<string> {
  const work = mkdtempSync(join(tmpdir(), 'sbom-'));
  try {
    // npm takes the name of the program from the folder.
    const folder = join(work, basename(options.name));
    writeLock(folder, options);
    const args = ['sbom', '--package-lock-only', '--sbom-format', 'cyclonedx', '--sbom-type', 'application'];
    const { stdout } = await promisify(execFile)('npm', args, { cwd: folder, maxBuffer: 64 << 20 });
    const { serialNumber: _, ...document } = JSON.parse(stdout) as Bom;
    const dated = { ...document, metadata: { ...document.metadata, timestamp: options.createdAt.toISOString() } };
    const serialNumber = `urn:uuid:${uuidOf(JSON.stringify(dated))}`;
    return `${JSON.stringify({ serialNumber, ...dated }, null, 2)}\n`;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Manifest and lock file of a program and of its workspaces, whose code is bundled. */
function writeLock(folder: string, { workspace, name, version, platform }: SbomOptions): void {
  const lock = readLock();
  const dependencies: Record<string, string> = {};
  const packages: Record<string, LockEntry> = {};
  for (const member of usedWorkspaces(lock, workspace)) {
    const { dependencies: required, optionalDependencies: optional } = readManifest(join(ROOT, member));
    const own = Object.entries({ ...required, ...optional }).filter(([dependency]) => !isWorkspace(lock, dependency));
    const names = own.map(([dependency]) => dependency);
    const closure = Object.entries(lockedClosure(lock, member, names));
    const admitted = new Map(closure.filter(([, entry]) => platform === undefined || admits(entry, platform)));
    Object.assign(packages, Object.fromEntries(admitted));
    // npm fails on a dependency outside the lock file, even if optional.
    Object.assign(dependencies, Object.fromEntries(own.filter(([dependency]) => admitted.has(`node_modules/${dependency}`))));
  }
  const { license } = readManifest(join(ROOT, workspace));
  const { overrides } = readManifest(ROOT);
  const root = { name, version, license, dependencies: sortKeys(dependencies) };
  mkdirSync(folder, { recursive: true });
  writeJson(join(folder, 'package.json'), { ...root, overrides, private: true });
  writeLockFile(join(folder, 'package-lock.json'), { root, packages: sortKeys(packages) });
}

function sortKeys<Value>(record: Readonly<Record<string, Value>>): Record<string, Value> {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** UUID version 8 (RFC 9562 section 5.8) of a text's SHA-256. */
function uuidOf(text: string): string {
  const bytes = createHash('sha256').update(text).digest().subarray(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
