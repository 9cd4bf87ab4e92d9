/**
 * Ledger processes that are killed at any moment: no confirmed step is lost, no nonce exists without its job, and all sums hold.
 *
 * Two processes on one PostgreSQL that end the same jobs charge each job once.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { program } from '../../../../../test/support/program.js';
import type { DatabaseTarget } from '../../../src/database/connection/open-database.js';
import { checkLedger } from '../../../src/database/ledger/check-ledger.js';
import { describeDatabases } from '../../support/databases.js';
import type { WorkerSaid } from './ledger-process.js';
import { upTo } from './random.js';
import { give, openTestLedger, T0 } from './random-steps.js';

const KILLS = Number(process.env.LEDGER_KILLS ?? 3);
const SHARED_JOBS = Number(process.env.LEDGER_SHARED_JOBS ?? 400);
const MAX_MS_ALIVE = 400;
const STARTING_BALANCE = 100_000_000;

interface Worker {
  readonly child: ChildProcess;
  readonly said: WorkerSaid[];
  readonly errors: string[];
  readonly ended: Promise<unknown>;
}

async function startWorker(target: DatabaseTarget, seed: number, shared: number): Promise<Worker> {
  const child = fork(
    await program('apps/coordinator/test/billing/ledger/ledger-process.ts'),
    [JSON.stringify(target), String(seed), String(shared)],
    { execArgv: [], stdio: ['ignore', 'ignore', 'pipe', 'ipc'] },
  );
  const said: WorkerSaid[] = [];
  const errors: string[] = [];
  child.on('message', (message) => said.push(message as WorkerSaid));
  child.stderr?.on('data', (data: Buffer) => errors.push(data.toString()));
  return { child, said, errors, ended: once(child, 'close') };
}

describeDatabases('processes at the ledger', (fresh, dialect) => {
  it(`lose nothing confirmed when killed (${KILLS} times)`, async () => {
    const place = await fresh();
    const database = await place.open();
    const first = await openTestLedger(database, { onError: () => undefined });
    for (const account of [0, 1, 2]) await give(first, `customer-${account}`, STARTING_BALANCE);
    await first.close();

    const promised: WorkerSaid[] = [];
    for (let kill = 0; kill < KILLS; kill++) {
      const { child, said, errors, ended } = await startWorker(place.target, kill, 0);
      // A process that exits early has reported its error, and would send no further message.
      const settledOne = new Promise<void>((resolve) => child.on('message', (message) => 'settled' in (message as object) && resolve()));
      await Promise.race([settledOne, ended]);
      expect({ errors, ended: child.exitCode }).toEqual({ errors: [], ended: null });
      await new Promise((resolve) => setTimeout(resolve, upTo(Math.random, MAX_MS_ALIVE)));
      child.kill('SIGKILL');
      await ended;
      promised.push(...said);
      const { problems } = await checkLedger(database);
      expect(problems).toEqual([]);
    }

    // A job and its nonce are stored together, so that no replay finds a job with a free nonce.
    const jobs = (await database.selectFrom('jobs').select('job_id').orderBy('job_id').execute()).map((row) => row.job_id);
    const nonces = await database.selectFrom('sealed_nonces').select(['digest', 'job_id']).orderBy('digest').execute();
    expect(nonces).toEqual(jobs.map((id) => ({ digest: id, job_id: id })));

    const settled = promised.filter((said) => 'settled' in said);
    const rows = await database.selectFrom('jobs').select(['job_id', 'cost']).where('state', '=', 'settled').execute();
    const costs = new Map(rows.map((row) => [row.job_id, row.cost]));
    expect(settled.filter((said) => costs.get(said.settled) !== said.cost)).toEqual([]);
    expect(settled.length).toBeGreaterThan(0);
    const deposits = new Set((await database.selectFrom('deposits').select('event_id').execute()).map((row) => row.event_id));
    expect(promised.filter((said) => 'deposited' in said && !deposits.has(said.deposited))).toEqual([]);

    // After the killed processes are considered dead, no reservation remains.
    await database
      .updateTable('ledger_holders')
      .set((set) => ({ seen_at: set('seen_at', '-', 86_400_000) }))
      .execute();
    const later = await openTestLedger(database, { now: () => T0 + 86_400_000, onError: () => undefined });
    const { problems, figures } = await checkLedger(database);
    expect({ problems, holds: figures.holds, held: figures.held }).toEqual({ problems: [], holds: 0, held: 0 });
    const { sum } = await database
      .selectFrom('deposits')
      .select((select) => select.fn.sum<number>('amount').as('sum'))
      .executeTakeFirstOrThrow();
    expect(figures.owed + figures.fees).toBe(sum);
    await later.close();
    await database.destroy();
    await place.remove();
  });

  // An SQLite file has only one coordinator.
  if (dialect === 'postgres') {
    it(`charge each of ${SHARED_JOBS} shared jobs once, with two processes on one server`, async () => {
      const place = await fresh();
      const database = await place.open();
      const first = await openTestLedger(database, { onError: () => undefined });
      for (const account of [0, 1, 2]) await give(first, `customer-${account}`, STARTING_BALANCE);
      await first.close();
      const workers = await Promise.all([startWorker(place.target, 7, SHARED_JOBS), startWorker(place.target, 8, SHARED_JOBS)]);
      await Promise.all(workers.map((worker) => worker.ended));
      expect(workers.flatMap((worker) => worker.errors)).toEqual([]);
      for (const { said } of workers) expect(said.at(-1)).toEqual({ done: true });

      const settled = workers.flatMap(({ said }) => said.filter((one) => 'settled' in one).map((one) => one.settled));
      expect(settled.length).toBeGreaterThan(SHARED_JOBS / 4);
      expect(new Set(settled).size).toBe(settled.length);
      const rows = await database.selectFrom('jobs').select(['job_id', 'state']).execute();
      expect(rows).toHaveLength(SHARED_JOBS);
      expect(
        rows
          .filter((row) => row.state === 'settled')
          .map((row) => row.job_id)
          .sort(),
      ).toEqual([...settled].sort());
      expect((await checkLedger(database)).problems).toEqual([]);
      await database.destroy();
      await place.remove();
    });
  }
});
