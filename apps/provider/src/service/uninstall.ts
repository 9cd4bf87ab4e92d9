/** Parts of an installation and functions that remove them, for the command `uninstall`. Other files are not touched. */
import { execFile } from 'node:child_process';
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync, rmdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import Type from 'typebox';
import { Check } from 'typebox/value';
import { controlPath } from '../control/address.js';
import { type Installation, launchCommand, launcherOf } from '../update/installation.js';
import { hideMenuBar, type MenuBarHost, menuBarHost } from './menu-bar.js';
import type { ServiceManager } from './service.js';

export interface Part {
  /** `session`: sign-in and sockets, which are removed with the program. */
  readonly kind: 'program' | 'session' | 'data' | 'key';
  readonly what: string;
  readonly path: string;
  /** Size on disk; null for small parts. */
  readonly bytes: number | null;
}

const SIGN_OUT_MS = 20_000;
/** `install.json`, written by `install.sh`. */
const InstallRecordSchema = Type.Object({ link: Type.String() });

/** Descriptions by name in the data directory. Unknown files are not removed. */
const DATA: Readonly<Record<string, string>> = {
  'config.toml': 'settings',
  'model-hashes.json': 'checksums of models',
  models: 'models',
  'add-ons': 'additional engines',
  logs: 'logs',
  'pause.json': 'current pause',
  'activity.json': 'serving times',
  'notifications.json': 'times of notifications',
};
const SOCKETS = /^(?:control|supervisor|machine)\.sock(?:\.start)?$/;
const CONFIG_DRAFT = /^config\.toml\.\d+\.new$/;

export function partsOf(found: Installation, dataDir: string): Part[] {
  const parts: Part[] = [];
  if (found.kind === 'own') {
    const link = linkOf(found.prefix);
    if (link !== null) parts.push({ kind: 'program', what: 'the command', path: link, bytes: null });
    parts.push({
      kind: 'program',
      what: 'the program with all its versions, and its own Node',
      path: found.prefix,
      bytes: bytesBelow(found.prefix),
    });
  }
  const names = existsSync(dataDir) ? readdirSync(dataDir) : [];
  for (const name of names) {
    const path = join(dataDir, name);
    if (name === 'enclave') parts.push({ kind: 'key', what: "this machine's key", path, bytes: null });
    else if (name === 'menu-bar') parts.push({ kind: 'program', what: 'the menu bar item', path, bytes: null });
    else if (name === 'account.json') parts.push({ kind: 'session', what: 'sign-in to your account', path, bytes: null });
    else if (SOCKETS.test(name)) parts.push({ kind: 'session', what: 'socket of the provider', path, bytes: null });
    else if (CONFIG_DRAFT.test(name)) parts.push({ kind: 'data', what: 'an incomplete copy of the settings', path, bytes: null });
    else if (DATA[name] !== undefined) parts.push({ kind: 'data', what: DATA[name], path, bytes: bytesBelow(path) });
  }
  const folder = dirname(controlPath(dataDir));
  if (folder !== dataDir && existsSync(folder)) parts.push({ kind: 'session', what: 'sockets of the provider', path: folder, bytes: null });
  return parts;
}

/** Except for programs, also removes an empty folder. */
export function removePart({ path, kind }: Part): void {
  rmSync(path, { recursive: true, force: true });
  if (kind === 'program') return;
  try {
    rmdirSync(dirname(path));
  } catch {
    // The folder is not empty.
  }
}

/** Link on the PATH, if the link still points to this installation. */
function linkOf(prefix: string): string | null {
  try {
    const value: unknown = JSON.parse(readFileSync(join(prefix, 'install.json'), 'utf8'));
    return Check(InstallRecordSchema, value) && readlinkSync(value.link) === launcherOf(prefix) ? value.link : null;
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

/** Returns problems as sentences for the owner. */
export async function endService(manager: ServiceManager, label: string): Promise<readonly string[]> {
  try {
    await manager.remove(label);
    return [];
  } catch (error) {
    return [`The service ${label} could not be removed: ${error instanceof Error ? error.message : 'unknown reason'}.`];
  }
}

/** Returns problems as sentences for the owner. */
export async function endMenuBar(dataDir: string, host: MenuBarHost = menuBarHost()): Promise<readonly string[]> {
  if (host.platform !== 'darwin') return [];
  try {
    await hideMenuBar(dataDir, host);
    return [];
  } catch (error) {
    return [`The menu bar item could not be removed: ${error instanceof Error ? error.message : 'unknown reason'}.`];
  }
}

/** Runs `logout`, which revokes this machine's token. Returns sentences for the owner. */
export async function signOut(found: Installation, dataDir: string): Promise<readonly string[]> {
  if (!existsSync(join(dataDir, 'account.json'))) return [];
  const [program = '', ...first] = launchCommand(found);
  try {
    await promisify(execFile)(program, [...first, 'logout', '--data-dir', dataDir], { timeout: SIGN_OUT_MS });
    return ['This machine was signed out.'];
  } catch {
    return ['The coordinator could not be reached. Remove this machine from your account in the console.'];
  }
}
