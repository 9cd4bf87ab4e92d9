/** `differingFiles`: checks that releases are reproducible. Builds twice, with other folder, time zone, language and umask. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from './manifest.js';

interface Place {
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  readonly umask: string;
}

const PLACES: readonly Place[] = [
  { folder: 'one', env: { TZ: 'UTC', LANG: 'C', LC_ALL: 'C' }, umask: '022' },
  { folder: 'another/deeper one', env: { TZ: 'Pacific/Kiritimati', LANG: 'tr_TR.UTF-8', LC_ALL: 'tr_TR.UTF-8' }, umask: '077' },
];

/**
 * Builds the current commit twice, without build cache. Returns the names of files that differ, also from the folder `against`.
 *
 * @param flags Flags of `npm run release -- artifacts`.
 */
export function differingFiles(flags: readonly string[], against: string | null): string[] {
  const work = mkdtempSync(join(tmpdir(), 'reproducible-'));
  try {
    // Both builds use this commit, because the branch may move.
    const [commit = '', createdAt = ''] = git('log', '-1', '--format=%H %ct').split(' ');
    const folders = PLACES.map((place) => buildIn(join(work, place.folder), place, { commit, createdAt, flags }));
    return differences([...folders, ...(against === null ? [] : [against])]);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

interface Sources {
  readonly commit: string;
  /** Seconds since 1970. */
  readonly createdAt: string;
  readonly flags: readonly string[];
}

function buildIn(folder: string, { env, umask }: Place, { commit, createdAt, flags }: Sources): string {
  mkdirSync(folder, { recursive: true });
  const archive = `${folder}.tar`;
  git('archive', '--format=tar', '--output', archive, commit);
  // Packages are copied into the folder, because bundles contain relative paths to them. Workspace links are relative, too.
  for (const part of ['', 'apps/coordinator', 'apps/console', 'apps/provider']) copyPackages(part, folder);
  const out = join(folder, 'release-files');
  const script =
    'umask "$1"; tar xf "$2"; npx turbo run build --force --output-logs=errors-only; shift 2; npx tsx scripts/release/run.ts "$@"';
  execFileSync('sh', ['-ec', script, 'sh', umask, archive, 'artifacts', '--out', out, ...flags], {
    cwd: folder,
    env: { ...process.env, ...env, SOURCE_DATE_EPOCH: createdAt, TURBO_TELEMETRY_DISABLED: '1' },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return out;
}

function git(...args: readonly string[]): string {
  return execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim();
}

/** Copies `node_modules` of the repository (`part` is empty) or of a workspace. Uses hard links on the same disk. */
function copyPackages(part: string, folder: string): void {
  const [from, to] = [join(ROOT, part, 'node_modules'), join(folder, part, 'node_modules')];
  if (!existsSync(from)) return;
  mkdirSync(join(folder, part), { recursive: true });
  try {
    execFileSync('cp', ['-al', from, to], { stdio: 'ignore' });
  } catch {
    rmSync(to, { recursive: true, force: true });
    execFileSync('cp', ['-a', from, to]);
  }
  rmSync(join(to, '.cache'), { recursive: true, force: true });
}

function differences(folders: readonly string[]): string[] {
  const [first = '', ...others] = folders;
  const names = new Set(folders.flatMap((folder) => readdirSync(folder)));
  const read = (folder: string, name: string): Buffer | null =>
    readdirSync(folder).includes(name) ? readFileSync(join(folder, name)) : null;
  return [...names].filter((name) => others.some((folder) => !isEqual(read(first, name), read(folder, name)))).sort();
}

function isEqual(a: Buffer | null, b: Buffer | null): boolean {
  return a !== null && b !== null && a.equals(b);
}
