/** Drill: a coordinator is backed up under load, killed, and restored elsewhere by its own commands, on both databases. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type OpenedCheckpoint, openCheckpoint, parseNoteKey } from '@inference/protocol';
import { nodeLogCrypto, sha256 } from '@inference/protocol/crypto';
import { afterEach, expect, it } from 'vitest';
import { type Backup, createBackup } from '../apps/coordinator/src/backup/create-backup.js';
import { restoreBackup } from '../apps/coordinator/src/backup/restore-backup.js';
import { type DatabaseTarget, openDatabase } from '../apps/coordinator/src/database/connection/open-database.js';
import { checkLedger } from '../apps/coordinator/src/database/ledger/check-ledger.js';
import { backupOptions, restoreOptions } from '../apps/coordinator/test/support/backup-options.js';
import { Browser } from '../apps/coordinator/test/support/console-client.js';
import { describeDatabases } from '../apps/coordinator/test/support/databases.js';
import { migratedFile } from '../apps/coordinator/test/support/fresh-database.js';
import { type CoordinatorAlone, ROOT, startCoordinatorAlone } from '../scripts/network/network.js';
import { LightAgent } from './support/light/agent.js';
import { type CommandResult, runNode } from './support/run-command.js';
import { temporaryDirectory } from './support/temporary-directory.js';
import { type Answer, ask } from './support/verified-client.js';

const COMMAND = join(ROOT, 'apps/coordinator/bin/inference-coordinator.js');
const MODEL = 'test/model-1';
const EMAIL = 'ada@example.com';

describeDatabases('a backup under load', (fresh, dialect) => {
  const closers: (() => unknown)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  interface Place {
    readonly dataDir: string;
    readonly env: Record<string, string>;
    readonly target: DatabaseTarget;
  }

  /** Creates storage for a coordinator: a data directory, and on PostgreSQL a database. */
  async function place(content: 'migrated' | 'empty'): Promise<Place> {
    const dataDir = temporaryDirectory('backup-drill');
    if (dialect === 'sqlite') {
      const file = join(dataDir, 'coordinator', 'coordinator.db');
      if (content === 'migrated') {
        mkdirSync(join(dataDir, 'coordinator'));
        writeFileSync(file, await migratedFile());
      }
      return { dataDir, env: { DATA_DIR: dataDir }, target: { file } };
    }
    const database = await fresh(content);
    closers.push(() => database.remove());
    const { databaseUrl = '' } = database.config;
    return { dataDir, env: { DATA_DIR: dataDir, DATABASE_URL: databaseUrl }, target: database.target };
  }

  async function start(dataDir: string, env: Record<string, string>): Promise<CoordinatorAlone> {
    const coordinator = await startCoordinatorAlone(dataDir, env);
    closers.push(() => coordinator.child.stop());
    return coordinator;
  }

  /** Runs the command `backup` on SQLite. On PostgreSQL, calls the command's function, which takes less processor time. */
  async function backUp(out: string, env: Record<string, string>): Promise<Pick<Backup, 'path' | 'manifest'>> {
    if (dialect === 'postgres') return createBackup(backupOptions(out, env));
    const { code, stdout, stderr } = await command(['backup', '--out', out, '--json'], env);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return JSON.parse(stdout) as Backup;
  }

  async function restore(from: string, env: Record<string, string>): Promise<void> {
    if (dialect === 'postgres') {
      expect((await restoreBackup(restoreOptions(from, env))).problems).toEqual([]);
      return;
    }
    const { code, stdout, stderr } = await command(['restore', '--from', from], env);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('the ledger holds');
    expect(stdout).toContain('split_view');
  }

  it('restores a network whose ledger balances, whose receipts verify, and to which agents and people return', async () => {
    const old = await place('migrated');
    const first = await start(old.dataDir, old.env);
    let address = first.baseUrl;
    const agent = await LightAgent.join({ url: () => address, models: [MODEL], staysConnected: true });
    closers.push(() => agent.leave());
    const person = new Browser(first.baseUrl);
    expect((await person.signUp(EMAIL)).status).toBe(200);
    const earlier = verified(await ask(first, { model: MODEL }));
    const earlierReceipt = await receiptOf(first, earlier);
    await untilStored(old.target, earlier.receipt.job_id);
    expect((await fetch(`${first.baseUrl}/v1/e2e/keyset`)).status).toBe(200);
    const { checkpoint: earlierCheckpoint, key: logKey } = await checkpointOf(first.baseUrl);
    expect(earlierCheckpoint.size).toBeGreaterThan(0);

    const folder = temporaryDirectory('backups');
    const load = startLoad(first);
    const { path, manifest } = await backUp(folder, old.env);
    expect(await load.stop()).toBeGreaterThan(0);
    const jobs = manifest.ledger?.jobs ?? 0;
    expect(jobs).toBeGreaterThan(0);

    await expect(restoreBackup(restoreOptions(path, old.env, { force: true }))).rejects.toThrow(/^A coordinator/);
    first.child.kill('SIGKILL');
    await first.child.exited;

    const restoredPlace = await place('empty');
    await restore(path, restoredPlace.env);

    const second = await start(restoredPlace.dataDir, restoredPlace.env);
    expect(second).toMatchObject({ apiKey: first.apiKey, adminKey: first.adminKey });
    address = second.baseUrl;
    await expect.poll(() => agent.isRegistered && agent.coordinatorUrl === address).toBe(true);
    const later = verified(await ask(second, { model: MODEL }));
    expect(later.providerId).toBe(earlier.providerId);
    expect(await receiptOf(second, earlier)).toEqual(earlierReceipt);
    // A restore ends all sessions, because some may have been revoked since the backup. The password still signs in.
    const returning = new Browser(second.baseUrl);
    for (const [name, value] of person.cookies) returning.cookies.set(name, value);
    expect((await returning.get('/console/v1/me')).status).toBe(401);
    expect((await returning.signIn(EMAIL)).status).toBe(200);
    // The keyset has a later epoch, and the log continues the earlier log under the same key.
    const keyset = (await (await fetch(`${second.baseUrl}/v1/e2e/keyset`)).json()) as { epoch: number };
    expect(keyset.epoch).toBeGreaterThan(1_000_000);
    const { checkpoint, key } = await checkpointOf(second.baseUrl);
    expect(key).toBe(logKey);
    expect(checkpoint.size).toBeGreaterThan(earlierCheckpoint.size);

    await second.child.stop();
    const database = await openDatabase(restoredPlace.target);
    const { figures, problems } = await checkLedger(database);
    await database.destroy();
    expect(problems).toEqual([]);
    expect(figures.jobs).toBeGreaterThan(jobs);
  });
});

type Verified = Extract<Answer, { kind: 'verified' }>;

function verified(answer: Answer): Verified {
  if (answer.kind !== 'verified') throw new Error(`the request was not answered: ${JSON.stringify(answer)}`);
  return answer;
}

/** Runs requests one after another until stopped; resolves to the number of answers. */
function startLoad(coordinator: CoordinatorAlone): { stop(): Promise<number> } {
  let isStopped = false;
  let answers = 0;
  const worker = async (): Promise<void> => {
    while (!isStopped) {
      verified(await ask(coordinator, { model: MODEL, stream: answers % 2 === 0 }));
      answers++;
    }
  };
  const workers = Promise.all([worker(), worker()]);
  return {
    stop: async () => {
      isStopped = true;
      await workers;
      return answers;
    },
  };
}

function command(args: readonly string[], env: Record<string, string>): Promise<CommandResult> {
  return runNode([COMMAND, ...args], { env: { PATH: process.env.PATH, ...env } });
}

async function receiptOf({ baseUrl, apiKey }: CoordinatorAlone, { receipt }: Verified): Promise<unknown> {
  const response = await fetch(`${baseUrl}/v1/receipts/${receipt.job_id}`, { headers: { 'x-api-key': apiKey } });
  expect(response.status).toBe(200);
  return response.json();
}

/** Waits for the receipt, because receipts are written in batches after the responses. */
async function untilStored(target: DatabaseTarget, jobId: string): Promise<void> {
  const database = await openDatabase(target);
  const find = () => database.selectFrom('receipts').select('job_id').where('job_id', '=', jobId).executeTakeFirst();
  await expect.poll(find).toBeDefined();
  await database.destroy();
}

/** The published checkpoint, verified with the log's key. */
async function checkpointOf(baseUrl: string): Promise<{ checkpoint: OpenedCheckpoint; key: string }> {
  const read = async (name: string): Promise<string> => (await fetch(`${baseUrl}/e2e/log/${name}`)).text();
  const [note, key] = [await read('checkpoint'), await read('key')];
  return { checkpoint: openCheckpoint(nodeLogCrypto, note, parseNoteKey(sha256, key.trim()), []), key };
}
