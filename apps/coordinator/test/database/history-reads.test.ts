import { join } from 'node:path';
import { LEADERBOARD_METRICS, STATISTICS_WINDOWS } from '@inference/formats';
import { CompiledQuery, Kysely } from 'kysely';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { openDatabase } from '../../src/database/connection/open-database.js';
import { sqliteDialect } from '../../src/database/connection/sqlite.js';
import type { Database, Tables } from '../../src/database/tables.js';
import { readUsage } from '../../src/database/usage-repository.js';
import { ProviderRegistry } from '../../src/providers/provider-registry.js';
import { SESSION_TIMINGS } from '../../src/providers/session/session-options.js';
import { APPLE_TRUST_ANCHOR } from '../../src/providers/verification/chain/trust-anchor.js';
import { PublicStatistics } from '../../src/telemetry/statistics/public-statistics.js';

/** Tables that statistics may read: their rows do not grow with the number of jobs; `unfolded_jobs` holds a second of jobs. */
const ROLL_UPS = ['network_totals', 'minute_totals', 'account_totals', 'secrets', 'unfolded_jobs'];

describe('reading history', () => {
  let directory: string;
  let database: Database;
  let queries: CompiledQuery[];

  beforeEach(async () => {
    directory = temporaryDirectory('coordinator-plans');
    const file = join(directory, 'test.db');
    await (await openDatabase({ file })).destroy();
    queries = [];
    database = new Kysely<Tables>({ dialect: sqliteDialect(file), log: ({ query }) => void queries.push(query) });
  });
  afterEach(() => database.destroy());

  /** SQLite's query plans of the executed queries, a line per table or step. */
  async function plans(): Promise<readonly string[]> {
    const lines: string[] = [];
    for (const { sql, parameters } of [...queries]) {
      if (!sql.startsWith('select')) continue;
      const { rows } = await database.executeQuery<{ detail: string }>(CompiledQuery.raw(`explain query plan ${sql}`, [...parameters]));
      lines.push(...rows.map(({ detail }) => detail));
    }
    return lines;
  }

  it('uses only roll-ups for the public statistics, and scans none of them', async () => {
    const timings = SESSION_TIMINGS;
    const registry = new ProviderRegistry({
      rules: {
        timings,
        allowSimulatedEnclave: true,
        anchor: APPLE_TRUST_ANCHOR,
        enrolments: async () => ({ kind: 'refused', reason: 'not_offered' }),
        now: Date.now,
      },
      random: Math.random,
      onEvent: () => {},
    });
    const statistics = new PublicStatistics({ database, registry, now: Date.now });
    await statistics.stats();
    for (const window of STATISTICS_WINDOWS) {
      await statistics.totals(window);
      for (const metric of LEADERBOARD_METRICS) await statistics.leaderboard({ metric, window, limit: 200 });
    }
    registry.close();
    const lines = await plans();
    expect(lines.length).toBeGreaterThanOrEqual(2 + 4 + 12);
    for (const line of lines) expect(line).toMatch(new RegExp(`^SEARCH (?:${ROLL_UPS.join('|')}) USING `));
  });

  it('finds a page of usage by index, anywhere in the history', async () => {
    const accountId = 'someone';
    const after = { completedAt: 1_000_000, jobId: '00000000-0000-4000-8000-000000000000' };
    await readUsage(database, { accountId }, { after: null, limit: 10 });
    await readUsage(database, { accountId }, { after, limit: 10 });
    await readUsage(database, { accountId, from: 5, to: 2_000_000, model: 'm' }, { after, limit: 10 });
    const lines = await plans();
    expect(lines).toHaveLength(3);
    for (const line of lines) expect(line).toMatch(/^SEARCH jobs USING INDEX jobs_by_account \(account_id=\?/);
    expect(lines[1]).toContain('ended_at<?');
    expect(lines[2]).toContain('ended_at>? AND ended_at<?');
  });
});
