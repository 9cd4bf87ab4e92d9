/** What an installation has made on this machine, part by part, and how each is taken away. Nothing else is touched. */
import { execFile } from 'node:child_process';
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync, rmdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import Type from 'typebox';
import { Compile } from 'typebox/compile';
import { controlPath } from '../control/address.js';
import { type Installation, launchCommand, launcherOf } from '../update/installation.js';
import type { ServiceManager } from './service.js';

export interface Part {
  readonly kind: 'program' | 'data' | 'key';
  readonly what: string;
  readonly path: string;
  /** On the disk; null for what is too small to count. */
  readonly bytes: number | null;
}

const SIGN_OUT_MS = 20_000;
const record = Compile(Type.Object({ link: Type.String() }));

/** What lies in a data directory, by name. What is not named here is not ours. */
const DATA: Readonly<Record<string, string>> = {
  'config.toml': 'settings',
  'account.json': 'the token of the account',
  'model-hashes.json': 'hashes of models',
  models: 'models',
  'add-ons': 'engines of models',
  logs: 'logs',
  'pause.json': 'a pause',
  'activity.json': 'when it served',
};
/** Left by a daemon, and small. */
const TRACES = /^(?:control|supervisor|machine)\.sock(?:\.start)?$|^config\.toml\.\d+\.new$/;

/** Parts that are there. */
export function partsOf(found: Installation, dataDir: string): Part[] {
  const parts: Part[] = [];
  if (found.kind === 'own') {
    const link = linkOf(found.prefix);
    if (link !== null) parts.push({ kind: 'program', what: 'the command', path: link, bytes: null });
    parts.push({
      kind: 'program',
      what: 'the program, all its versions, and its Node',
      path: found.prefix,
      bytes: bytesBelow(found.prefix),
    });
  }
  const names = existsSync(dataDir) ? readdirSync(dataDir) : [];
  for (const name of names) {
    const path = join(dataDir, name);
    if (name === 'enclave') parts.push({ kind: 'key', what: "this machine's key", path, bytes: null });
    else if (TRACES.test(name)) parts.push({ kind: 'data', what: 'left by a provider that ran', path, bytes: null });
    else if (DATA[name] !== undefined) parts.push({ kind: 'data', what: DATA[name], path, bytes: bytesBelow(path) });
  }
  const folder = dirname(controlPath(dataDir));
  if (folder !== dataDir && existsSync(folder)) parts.push({ kind: 'data', what: 'the socket of commands', path: folder, bytes: null });
  return parts;
}

/** Takes it away, and the folder that held it where that is empty then. */
export function removePart({ path, kind }: Part): void {
  rmSync(path, { recursive: true, force: true });
  if (kind === 'program') return;
  try {
    rmdirSync(dirname(path));
  } catch {
    // Something is left in it.
  }
}

/** The link on the PATH, if it is ours still. */
function linkOf(prefix: string): string | null {
  try {
    const value: unknown = JSON.parse(readFileSync(join(prefix, 'install.json'), 'utf8'));
    return record.Check(value) && readlinkSync(value.link) === launcherOf(prefix) ? value.link : null;
  } catch {
    return null;
  }
}

function bytesBelow(path: string): number {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return 0;
  if (!found.isDirectory()) return found.size;
  return readdirSync(path).reduce((sum, name) => sum + bytesBelow(join(path, name)), 0);
}

/** Ends the service and takes its definition away. What the owner should know, in sentences. */
export async function endService(manager: ServiceManager, label: string): Promise<readonly string[]> {
  try {
    await manager.remove(label);
    return [];
  } catch (error) {
    return [`The service ${label} could not be removed: ${error instanceof Error ? error.message : 'unknown reason'}.`];
  }
}

/** Has the coordinator forget the token of this machine, where there is one. It may be away: then the owner does it. */
export async function signOut(found: Installation, dataDir: string): Promise<readonly string[]> {
  if (!existsSync(join(dataDir, 'account.json'))) return [];
  const [program = '', ...first] = launchCommand(found);
  try {
    await promisify(execFile)(program, [...first, 'logout', '--data-dir', dataDir], { timeout: SIGN_OUT_MS });
    return ['This machine is signed out.'];
  } catch {
    return ['The coordinator was not told: remove this machine from your account in the console.'];
  }
}
