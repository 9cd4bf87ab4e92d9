/**
 * `CreditRecalls` asks other coordinators to return the unused money of their credit leases, and waits for it.
 *
 * A credit lease is a part of an account's balance from which one coordinator reserves in memory (`CreditLeases`).
 */
import { setTimeout as pause } from 'node:timers/promises';
import { hasRecalls, recallLeases } from '../../database/ledger/credit-leases.js';
import type { Database } from '../../database/tables.js';
import { LedgerError } from './ledger-error.js';

/** Notifications of recalls between coordinators, over NATS. Recalls also work without them, but slower. */
export interface RecallHints {
  publish(account: string): void;
  /** Calls the listener with the accounts of other coordinators' notifications. */
  on(listener: (accounts: ReadonlySet<string>) => void): void;
}

interface CreditRecallsOptions {
  readonly database: Database;
  /** Id of this coordinator, as in `ledger_holders`. */
  readonly holder: string;
  readonly transact: <T>(work: (transaction: Database) => Promise<T>) => Promise<T>;
  readonly hints: RecallHints | undefined;
  /** Maximum wait for the other coordinators, in milliseconds. Longer than their renewal interval. */
  readonly maxMs: number;
}

const MIN_POLL_MS = 20;
const MAX_POLL_MS = 250;

export class CreditRecalls {
  readonly #options: CreditRecallsOptions;
  /** Key: account. */
  readonly #running = new Map<string, Promise<void>>();

  constructor(options: CreditRecallsOptions) {
    this.#options = options;
  }

  /** Resolves when no lease of the account is marked as recalled. Rejects with {@link LedgerError} `unavailable` after `maxMs`. */
  recall(account: string): Promise<void> {
    let running = this.#running.get(account);
    if (running === undefined) {
      running = this.#recall(account).finally(() => this.#running.delete(account));
      this.#running.set(account, running);
    }
    return running;
  }

  async #recall(account: string): Promise<void> {
    const { database, holder, transact, hints, maxMs } = this.#options;
    const deadline = performance.now() + maxMs;
    await transact((transaction) => recallLeases(transaction, account, holder));
    hints?.publish(account);
    for (let pollMs = MIN_POLL_MS; await hasRecalls(database, account); pollMs = Math.min(MAX_POLL_MS, 1.5 * pollMs)) {
      if (performance.now() > deadline) throw new LedgerError('unavailable', 'another coordinator did not return leased money in time');
      await pause(pollMs);
    }
  }
}
