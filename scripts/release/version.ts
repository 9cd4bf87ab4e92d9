/** Prepares a release: sets versions and changelog from the changesets, and records tagged coordinators for upgrade tests. */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import getReleasePlan from '@changesets/get-release-plan';
import { MIGRATIONS } from '../../apps/coordinator/src/database/migrations/all.js';
import { withRelease } from './changelog.js';
import { ROOT, readManifest, writeJson } from './manifest.js';

const CHANGELOG = join(ROOT, 'CHANGELOG.md');
const RELEASES = join(ROOT, 'scripts/release/coordinator-releases.json');
const PRODUCT = '@inference/coordinator';

/** Applies the changesets, and returns the new version. Throws if no changeset affects the coordinator. */
export async function prepareVersion(date: string): Promise<string> {
  const plan = await getReleasePlan(ROOT);
  const version = plan.releases.find(({ name }) => name === PRODUCT)?.newVersion;
  if (version === undefined) throw new Error('no changeset names a program: there is nothing to release');
  const entries = plan.changesets.map(({ summary, releases }) => ({ summary, packages: releases.map(({ name }) => name) }));
  const changelog = withRelease(readFileSync(CHANGELOG, 'utf8'), version, date, entries);
  run('npx', ['changeset', 'version']);
  writeFileSync(CHANGELOG, changelog);
  writeJson(join(ROOT, 'package.json'), { ...readManifest(ROOT), version });
  run('npm', ['install', '--package-lock-only', '--ignore-scripts', '--no-audit', '--no-fund']);
  return version;
}

/** Adds the tagged commit to coordinator-releases.json, from which later versions test their upgrade. Throws for a duplicate. */
export function recordRelease(version: string): void {
  const releases = JSON.parse(readFileSync(RELEASES, 'utf8')) as { readonly version: string }[];
  if (releases.some((release) => release.version === version)) throw new Error(`${version} is recorded already`);
  const commit = run('git', ['rev-list', '-n', '1', `v${version}`]);
  const schema = Object.keys(MIGRATIONS).sort().at(-1);
  writeJson(RELEASES, [...releases, { version, commit, schema }]);
}

function run(command: string, args: readonly string[]): string {
  return execFileSync(command, args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).trim();
}
