/** File part of the command `check`: data directory, agent releases, and the web console's files. */
import { randomBytes } from 'node:crypto';
import { constants, existsSync, readFileSync, statSync } from 'node:fs';
import { access, rm, statfs, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { compareVersions, lazyValidator, type Release, ReleaseFeedSchema } from '@inference/protocol';
import { verifyRelease } from '@inference/protocol/crypto';
import type { Config } from '../../config/config.js';
import { errorReason } from '../../config/startup-error.js';
import { openConsoleFiles } from '../../routes/system/console-files.js';
import { coordinatorDirectory } from '../command-database.js';
import { type Finding, ok, problem, skipped, warning } from './finding.js';

/** Minimum free space of the data directory for everything but stored images, such as the database. */
const MIN_FREE_BYTES = 2 ** 30;

export async function checkDataDirectory(config: Config): Promise<Finding[]> {
  const directory = resolve(coordinatorDirectory(config));
  const existing = nearestExisting(directory);
  const uid = process.getuid?.() ?? 0;
  try {
    if (!statSync(existing).isDirectory()) return [problem(`${existing} is not a folder`, 'Set DATA_DIR to a folder.')];
    await access(existing, constants.R_OK | constants.W_OK | constants.X_OK);
    if (existing === directory) await writeOnce(directory);
  } catch (error) {
    return [
      problem(
        `${existing} cannot be written by this user: ${errorReason(error)}`,
        `chown ${uid} ${existing}, or run this as the user of the service.`,
      ),
    ];
  }
  const { bavail, bsize } = await statfs(existing);
  const free = bavail * bsize;
  const needed = config.images.storeBytes + MIN_FREE_BYTES;
  const findings: Finding[] = [];
  if (free < needed) {
    const text = `${gib(free)} free at ${existing}, less than IMAGE_STORE_MB and 1 GiB together (${gib(needed)})`;
    findings.push(warning(text, 'Free some space, or set a smaller IMAGE_STORE_MB.'));
  }
  if (existing !== directory) return [...findings, ok(`${directory} will be created at the first start`)];
  if ((statSync(directory).mode & 0o077) !== 0) {
    findings.push(warning(`${directory}, which contains keys, is open to other users of this machine`, `chmod 700 ${directory}`));
  }
  return findings.length > 0 ? findings : [ok(`${directory} can be written, ${gib(free)} free`)];
}

function nearestExisting(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : nearestExisting(dirname(path));
}

async function writeOnce(directory: string): Promise<void> {
  const file = join(directory, `check-${randomBytes(8).toString('hex')}`);
  try {
    await writeFile(file, 'check', { flag: 'wx', mode: 0o600 });
  } finally {
    await rm(file, { force: true });
  }
}

function gib(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}

const feed = lazyValidator(ReleaseFeedSchema);

/** `releaseKey`: base64 public key that must verify every release. Null: only the length of signatures is checked. */
export async function checkReleases({ agentReleases: path }: Config, releaseKey: string | null): Promise<Finding[]> {
  if (path === null) return [skipped('AGENT_RELEASES is not set: agents find no updates here')];
  const remedy = 'Create the file with: npm run release -- sign (docs/releasing.md)';
  let releases: readonly Release[];
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'));
    if (!feed().Check(value)) return [problem(`${path} is no list of signed releases`, remedy)];
    releases = value.releases;
  } catch (error) {
    return [problem(`${path} cannot be read: ${error instanceof SyntaxError ? 'no JSON' : errorReason(error)}`, remedy)];
  }
  const newest = releases
    .map(({ version }) => version)
    .sort(compareVersions)
    .at(-1);
  if (newest === undefined) return [warning(`${path} contains no release`, remedy)];
  const text = `${releases.length} ${releases.length === 1 ? 'release' : 'releases'}, the newest is ${newest}`;
  const refused = releases.filter((release) => !(releaseKey === null ? hasSignature(release) : verifyRelease(release, [releaseKey])));
  if (refused.length === 0)
    return [ok(`${text}; ${releaseKey === null ? 'signed (pass --release-key to verify)' : 'every signature verifies'}`)];
  const names = refused.map(({ version, platform }) => `${version} for ${platform}`).join(', ');
  return [problem(`agents refuse ${names}: the signature ${releaseKey === null ? 'is malformed' : 'is not of this key'}`, remedy)];
}

/** An Ed25519 signature has 64 bytes. */
function hasSignature({ signature }: Release): boolean {
  return Buffer.from(signature, 'base64').length === 64;
}

export async function checkConsole({ consoleDir }: Config): Promise<Finding[]> {
  if (openConsoleFiles(consoleDir) !== null) return [ok(consoleDir === null ? 'the console beside the program is served' : consoleDir)];
  return [warning('there is no web console beside the program', 'Build it (npm run build), or set CONSOLE_DIR.')];
}
