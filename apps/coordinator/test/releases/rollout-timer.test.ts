import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { createLog } from '../../src/log.js';
import type { ProviderRegistry } from '../../src/providers/provider-registry.js';
import { JobOutcomes } from '../../src/releases/job-outcomes.js';
import { Metrics } from '../../src/telemetry/metrics.js';
import { openReleases } from '../../src/wiring/releases.js';
import { createStartContext } from '../../src/wiring/start-context.js';
import { freshSqlite } from '../support/fresh-database.js';

const MINUTE = 60_000;

afterEach(() => {
  vi.useRealTimers();
});

it('starts no further check while one waits for the database', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const test = await freshSqlite();
  const connection = await test.open();
  let beforeResult = async (): Promise<void> => {};
  const database = connection.withPlugin({
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => {
      await beforeResult();
      return result;
    },
  });
  const file = join(temporaryDirectory('rollouts'), 'releases.json');
  writeFileSync(file, JSON.stringify({ releases: [] }));
  let checks = 0;
  const snapshots = () => {
    checks++;
    return [];
  };
  const context = createStartContext({
    log: createLog('silent', { write: () => {} }),
    config: { agentReleases: file, cluster: null, dataDir: '/nowhere' },
    rolloutCheckMs: MINUTE,
  } as unknown as Parameters<typeof createStartContext>[0]);
  const registry = { snapshots } as unknown as ProviderRegistry;
  await openReleases(context, { database, registry, outcomes: new JobOutcomes(), metrics: new Metrics() });
  let resume = (): void => {};
  const hanging = new Promise<void>((resolve) => {
    resume = resolve;
  });
  beforeResult = () => hanging;
  vi.advanceTimersByTime(60 * MINUTE);
  resume();
  await context.disposal.close();
  expect(checks).toBe(1);
  await connection.destroy();
  await test.remove();
});
