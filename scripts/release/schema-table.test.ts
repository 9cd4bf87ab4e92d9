/** The version tables of docs/upgrading.md equal those of the code. */
import { readFileSync } from 'node:fs';
import { compareVersions, PROTOCOL_VERSIONS, RECEIPT_VERSIONS } from '@inference/protocol';
import { expect, it } from 'vitest';
import { MIGRATIONS } from '../../apps/coordinator/src/database/migrations/all.js';
import { describeMigration } from '../../apps/coordinator/src/database/migrations/describe-migration.js';
import { type CoordinatorRelease, coordinatorReleases } from '../../test/support/released-coordinator.js';

const UPGRADING = new URL('../../docs/upgrading.md', import.meta.url);
const names = Object.keys(MIGRATIONS).sort();

/** Table row of a release, with the newest schema on which the release runs. */
function row({ version, schema }: CoordinatorRelease): string {
  const later = names.slice(names.indexOf(schema) + 1);
  const refused = later.findIndex((name) => compareVersions(describeMigration(name).oldestProgram ?? version, version) > 0);
  const last = refused === -1 ? 'the newest' : `\`${refused === 0 ? schema : later[refused - 1]}\``;
  return `| ${version} | \`${schema}\` | ${last} |`;
}

it('docs/upgrading.md lists each release with its schemas', () => {
  const text = readFileSync(UPGRADING, 'utf8');
  const [, table = ''] = /\| version \| brings the schema to \|.*\n\|[-|]+\|\n((?:\|.*\n)+)/.exec(text) ?? [];
  expect(table.trim().split('\n')).toEqual(coordinatorReleases().map(row));
  expect(text).toContain(`| wire protocol | ${PROTOCOL_VERSIONS.join(', ')} |`);
  expect(text).toContain(`| receipts | ${RECEIPT_VERSIONS.join(', ')} |`);
});

it('releases are in order, with migrations that exist', () => {
  const releases = coordinatorReleases();
  expect(releases.length).toBeGreaterThan(0);
  for (const { commit, schema } of releases) {
    expect(commit).toMatch(/^[0-9a-f]{40}$/);
    expect(names).toContain(schema);
  }
  const sorted = [...releases].sort((a, b) => compareVersions(a.version, b.version));
  expect(releases).toEqual(sorted);
});
