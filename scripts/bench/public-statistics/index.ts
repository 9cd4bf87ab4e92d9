/**
 * Statistics bench: processor time to answer `/v1/stats`, `/v1/network/totals` and `/v1/leaderboard`, without cache and without HTTP.
 *
 * The SQLite database contains the totals of a year. 500 providers seem to be connected.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LEADERBOARD_METRICS, STATISTICS_WINDOWS } from '@inference/formats';
import { openDatabase } from '../../../apps/coordinator/src/database/connection/open-database.js';
import type { ModelListing } from '../../../apps/coordinator/src/providers/placement/model-directory.js';
import type { ProviderSnapshot } from '../../../apps/coordinator/src/providers/provider-snapshot.js';
import type { RegistryView } from '../../../apps/coordinator/src/telemetry/statistics/network-statistics.js';
import { PublicStatistics } from '../../../apps/coordinator/src/telemetry/statistics/public-statistics.js';
import { seededRandom } from '../../../test/support/seeded-random.js';
import { sized } from '../size.js';
import { median, percentile } from '../statistics.js';
import { writeHistory } from './history.js';

const JOBS = sized(10_000_000, 20_000);
const ACCOUNTS = 5000;
const PROVIDERS = 500;
const DAYS = 365;
/** Maximum CPU time per request. */
const TARGET_MS = 5;
const ROUNDS = sized(100, 2);
const WARM_UP = sized(10, 1);

/** Prints the results. Resolves to whether each request took less CPU time than the target. */
export async function benchPublicStatistics(): Promise<boolean> {
  const directory = mkdtempSync(join(tmpdir(), 'bench-public-statistics-'));
  const database = await openDatabase({ file: join(directory, 'bench.db') });
  try {
    const now = Date.now();
    const started = performance.now();
    const rows = await writeHistory(database, {
      jobs: JOBS,
      accounts: ACCOUNTS,
      providers: PROVIDERS,
      days: DAYS,
      now,
      random: seededRandom(1),
    });
    const seconds = ((performance.now() - started) / 1000).toFixed(0);
    console.log(
      `  ${JOBS.toLocaleString('en')} jobs of ${ACCOUNTS} accounts on ${PROVIDERS} providers: ${rows.toLocaleString('en')} rows in ${seconds} s`,
    );
    const registry = simulatedRegistry();
    // A new instance has an empty cache.
    const fresh = () => new PublicStatistics({ database, registry, now: () => now });
    const results = [await measure('/v1/stats', () => fresh().stats())];
    for (const window of STATISTICS_WINDOWS) {
      results.push(await measure(`/v1/network/totals?window=${window}`, () => fresh().totals(window)));
      for (const metric of LEADERBOARD_METRICS) {
        const choice = { metric, window, limit: 200 };
        results.push(await measure(`/v1/leaderboard?metric=${metric}&window=${window}&limit=200`, () => fresh().leaderboard(choice)));
      }
    }
    return results.every((isMet) => isMet);
  } finally {
    await database.destroy();
    rmSync(directory, { recursive: true, force: true });
  }
}

async function measure(name: string, answer: () => Promise<{ readonly value: object }>): Promise<boolean> {
  for (let round = 0; round < WARM_UP; round++) await answer();
  const times: number[] = [];
  const before = process.cpuUsage();
  for (let round = 0; round < ROUNDS; round++) {
    const started = performance.now();
    JSON.stringify((await answer()).value);
    times.push(performance.now() - started);
  }
  const { user, system } = process.cpuUsage(before);
  const cpu = (user + system) / 1000 / ROUNDS;
  const isMet = cpu < TARGET_MS;
  const slow = percentile(
    times.sort((a, b) => a - b),
    0.95,
  );
  console.log(
    `  ${name.padEnd(54)} ${cpu.toFixed(2)} ms of CPU; median ${median(times).toFixed(2)} ms, p95 ${slow.toFixed(2)} ms${isMet ? '' : ' TOO SLOW'}`,
  );
  return isMet;
}

/** The part of a provider registry that the statistics read. */
function simulatedRegistry(): RegistryView {
  const snapshots = Array.from({ length: PROVIDERS }, (_, index) => {
    const id = index.toString(16).padStart(32, '0');
    return {
      registration: {
        identity: { providerId: id, attestation: { chip_name: 'Apple M4 Max' } },
        memoryGb: 128,
        hardware: { chip_family: 'M4', cpu_cores: 16, gpu_cores: 40, bandwidth_gbs: 546 },
      },
      models: [{ id: `model-${index % 20}` }, { id: `model-${(index + 1) % 20}` }],
      currentModel: `model-${index % 20}`,
      statistics: { decodeTps: 60 + (index % 10) / 10, requestsServed: index, tokensGenerated: index * 100 },
      trust: { level: 'hardware' },
      status: 'online',
    } as unknown as ProviderSnapshot;
  });
  const models = Array.from({ length: 20 }, (_, index) => ({
    offer: { id: `model-${index}` },
    providers: snapshots.slice(0, 50),
    firstSeenAt: 0,
  }));
  return {
    snapshots: () => snapshots,
    models: { listing: () => ({ models, namesOf: () => [] }) as unknown as ModelListing },
  };
}
