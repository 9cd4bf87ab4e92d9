/** `openCustomers`: creates funded accounts on a running coordinator, and audits that each paid exactly for its answers. */
import { join } from 'node:path';
import type { Receipt } from '@inference/protocol';
import { addKey, createAccount, newKeyText } from '../../apps/coordinator/src/database/accounts/api-key-repository.js';
import { openDatabase } from '../../apps/coordinator/src/database/connection/open-database.js';
import { checkLedger } from '../../apps/coordinator/src/database/ledger/check-ledger.js';
import type { Access } from './verified-client.js';

export interface Customer extends Access {
  readonly accountId: string;
}

export interface UsageEntry {
  readonly request_id: string;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly cost_micro_usd: number;
}

/** Billed part of a receipt. */
export interface SignedUsage {
  readonly job_id: string;
  readonly usage: Pick<Receipt['usage'], 'prompt_tokens' | 'completion_tokens'>;
}

/** Time for the jobs of a customer to settle on a busy machine, in milliseconds. */
const AUDIT_MS = 60_000;

/** Default of a customer's first deposit, in micro-USD. */
export const DEPOSIT = 50_000_000;

export interface Customers {
  /** `amount`: of the first deposit, in micro-USD. */
  customer(amount?: number): Promise<Customer>;
  /** Balance in micro-USD. */
  money(customer: Customer): Promise<{ readonly balance: number; readonly reserved: number }>;
  usage(customer: Customer): Promise<UsageEntry[]>;
  /**
   * Waits until nothing is reserved, then returns problems: balance against usage entries, and entries against receipts.
   * `maxOthers`: further jobs that may have an entry; default 0.
   */
  audit(customer: Customer, paid: readonly SignedUsage[], maxOthers?: number): Promise<string[]>;
  /** Problems found by the ledger's own check. */
  ledgerProblems(): Promise<string[]>;
  close(): Promise<void>;
}

/** `network`: a coordinator with its database file under `dataDir`, or its PostgreSQL at `databaseUrl`. */
export async function openCustomers(network: {
  readonly baseUrl: string;
  readonly adminKey: string;
  readonly dataDir: string;
  readonly databaseUrl?: string;
}): Promise<Customers> {
  // A second connection to the coordinator's database.
  const { databaseUrl: url, dataDir } = network;
  const database = await openDatabase(url === undefined ? { file: join(dataDir, 'coordinator', 'coordinator.db') } : { url });
  let deposits = 0;
  const call = async <Body>(path: string, key: string, body?: object): Promise<Body> => {
    const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const response = await fetch(network.baseUrl + path, { ...init, headers });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as Body;
  };
  const money = async ({ accountId }: Customer): Promise<{ balance: number; reserved: number }> => {
    const account = await call<{ balance_micro_usd: number; reserved_micro_usd: number }>(
      `/admin/v1/accounts/${accountId}`,
      network.adminKey,
    );
    return { balance: account.balance_micro_usd, reserved: account.reserved_micro_usd };
  };
  /** Sum of the deposits of a customer, in micro-USD. */
  const deposited = async ({ accountId }: Customer): Promise<number> => {
    const rows = await database.selectFrom('deposits').select('amount').where('account_id', '=', accountId).execute();
    return rows.reduce((sum, { amount }) => sum + amount, 0);
  };
  const usage = async ({ apiKey }: Customer): Promise<UsageEntry[]> => {
    const entries: UsageEntry[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const path: string = `/v1/payments/usage?limit=1000${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`;
      const page: { usage: UsageEntry[]; next_cursor: string | null } = await call(path, apiKey);
      entries.push(...page.usage);
      cursor = page.next_cursor;
    }
    return entries;
  };
  return {
    async customer(amount = DEPOSIT) {
      const apiKey = newKeyText();
      const accountId = await createAccount(database, 'customer', Date.now());
      await addKey(database, { accountId, kind: 'api', text: apiKey, now: Date.now() });
      const deposit = { amount_micro_usd: amount, reference: `faults-${accountId}-${deposits++}` };
      if (amount > 0) await call(`/admin/v1/accounts/${accountId}/deposits`, network.adminKey, deposit);
      return { accountId, apiKey, baseUrl: network.baseUrl };
    },
    money,
    usage,
    async audit(customer, paid, maxOthers = 0) {
      const problems: string[] = [];
      const deadline = Date.now() + AUDIT_MS;
      const read = async () => ({ before: await money(customer), entries: await usage(customer), after: await money(customer) });
      let found = await read();
      // The usage entries match the balance if the balance is equal before and after reading them.
      while ((found.after.reserved > 0 || found.before.balance !== found.after.balance) && Date.now() < deadline) {
        await new Promise((resolve) => setTimeout(resolve, 50));
        found = await read();
      }
      const { balance, reserved } = found.after;
      const { entries } = found;
      if (reserved !== 0) problems.push(`${reserved} stay reserved`);
      const spent = entries.reduce((sum, { cost_micro_usd }) => sum + cost_micro_usd, 0);
      const taken = (await deposited(customer)) - balance;
      if (taken !== spent) problems.push(`${taken} were taken, and the entries come to ${spent}`);
      for (const { job_id, usage: signed } of paid) {
        const entry = entries.find(({ request_id }) => request_id === job_id);
        if (entry === undefined) problems.push(`nothing was paid for ${job_id}`);
        else if (entry.prompt_tokens !== signed.prompt_tokens || entry.completion_tokens !== signed.completion_tokens) {
          problems.push(`${job_id} was paid as ${entry.prompt_tokens}+${entry.completion_tokens} tokens, signed ${JSON.stringify(signed)}`);
        }
      }
      const known = new Set<string>(paid.map(({ job_id }) => job_id));
      const unknown = entries.filter(({ request_id }) => !known.has(request_id));
      if (unknown.length > maxOthers) problems.push(`paid without an answer: ${JSON.stringify(unknown)}`);
      return problems;
    },
    ledgerProblems: async () => [...(await checkLedger(database)).problems],
    close: () => database.destroy(),
  };
}
