/**
 * Process that reserves, settles and releases jobs of one account from credit leases until it is killed. Reports each settlement.
 *
 * Arguments: the database as JSON, and a seed.
 */

import { seededRandom } from '../../../../../test/support/seeded-random.js';
import { type DatabaseTarget, openDatabase } from '../../../src/database/connection/open-database.js';
import { upTo } from './random.js';
import { newJob, openTestLedger, reservation, settlement, T0 } from './random-steps.js';

const AT_ONCE = 16;
const [targetText = '', seedText = ''] = process.argv.slice(2);
const random = seededRandom(Number(seedText));

async function main(): Promise<void> {
  const database = await openDatabase(JSON.parse(targetText) as DatabaseTarget);
  const ledger = await openTestLedger(database, { separateReservations: true, leases: { minPerSecond: 5 }, onError: () => undefined });
  const worker = async (): Promise<void> => {
    for (;;) {
      const job = reservation({ jobId: newJob() });
      const reserved = await ledger.reserve(job);
      if (reserved.kind !== 'reserved' || random() < 0.05) continue;
      if (random() < 0.2) {
        await ledger.release(job.jobId, T0);
        continue;
      }
      const outcome = await ledger.settle(settlement(job.jobId, { completionTokens: upTo(random, 20) }));
      process.send?.({ settled: job.jobId, kind: outcome.kind, cost: outcome.kind === 'settled' ? outcome.cost : 0 });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
