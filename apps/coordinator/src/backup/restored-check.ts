/** `checkRestored`: verifies the ledger and the transparency log of a restored database, and compares both with the manifest. */
import { sha256 } from '@inference/protocol/crypto';
import { checkLog } from '../database/backup/check-log.js';
import { databaseFigures } from '../database/backup/database-figures.js';
import { checkLedger, type LedgerFigures } from '../database/ledger/check-ledger.js';
import type { Database } from '../database/tables.js';
import { compareWithCheckpoint } from './log-key.js';
import type { Manifest } from './manifest.js';

export interface RestoredCheck {
  /** One sentence per problem; empty if everything agrees. */
  readonly problems: readonly string[];
  readonly ledger: LedgerFigures;
  /** Published entries of the transparency log; null without a log. */
  readonly publishedEntries: number | null;
  /** Ids of up to {@link MAX_NAMED} withdrawals that were open at the backup and may have been paid since. */
  readonly openWithdrawals: readonly string[];
}

const MAX_NAMED = 20;

/** `hasNewLog`: the log was replaced, so the manifest's checkpoint does not apply. */
export async function checkRestored(database: Database, manifest: Manifest, hasNewLog: boolean): Promise<RestoredCheck> {
  const { figures: ledger, problems: ledgerProblems } = await checkLedger(database);
  const { logHead } = await databaseFigures(database);
  const logProblems = await checkLog(database, sha256);
  const { transparency_log: log } = manifest;
  if (log !== null && !hasNewLog) logProblems.push(...compareWithCheckpoint(log, logHead));
  const withdrawals = await database
    .selectFrom('withdrawals')
    .select('id')
    .where('state', '=', 'requested')
    .orderBy('id')
    .limit(MAX_NAMED)
    .execute();
  return {
    problems: [
      ...ledgerProblems.map((problem) => `ledger: ${problem}`),
      ...compareLedger(manifest, ledger),
      ...logProblems.map((problem) => `transparency log: ${problem}`),
    ],
    ledger,
    publishedEntries: logHead?.publishedSize ?? null,
    openWithdrawals: withdrawals.map(({ id }) => id),
  };
}

function compareLedger({ ledger: expected }: Manifest, restored: LedgerFigures): string[] {
  const names = ['postings', 'accounts', 'jobs', 'holds', 'held', 'owed', 'fees'] as const;
  if (expected === null) return [];
  return names
    .filter((name) => expected[name] !== restored[name])
    .map((name) => `ledger: ${name} is ${restored[name]}, and was ${expected[name]} in the backup`);
}
