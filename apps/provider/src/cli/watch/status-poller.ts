/** `StatusPoller` collects the data of `status`: the daemon's status at each call, earnings at longer intervals. Never rejects. */
import { readAccount } from '../../account/account-file.js';
import { readActivity } from '../../account/duty-cycle.js';
import { type EarningsView, fetchEarnings, viewOf } from '../../account/earnings.js';
import { requestStatus } from '../../control/control-client.js';
import type { DaemonStatus } from '../../control/daemon-status.js';

export interface StatusSnapshot {
  /** Null if the daemon does not answer; `problem` then has the reason. */
  readonly status: DaemonStatus | null;
  readonly problem: string | null;
  readonly earnings: EarningsView | null;
}

export const INITIAL_SNAPSHOT: StatusSnapshot = { status: null, problem: 'no answer yet', earnings: null };

/** Longer than the daemon waits for the coordinator (`VIEW_MS`). */
const STATUS_MS = 6_000;
const EARNINGS_MS = 4_000;
/** Earnings are requested from the coordinator, not from the daemon. */
const EARNINGS_INTERVAL_MS = 30_000;

export class StatusPoller {
  readonly #dataDir: string;
  readonly #timeZone: string;
  #earnings: EarningsView | null = null;
  #earningsAskedAt = Number.NEGATIVE_INFINITY;

  constructor(dataDir: string, timeZone: string) {
    this.#dataDir = dataDir;
    this.#timeZone = timeZone;
  }

  async poll(signal?: AbortSignal): Promise<StatusSnapshot> {
    const [status] = await Promise.all([this.#status(), this.#refreshEarnings(signal)]);
    return { ...status, earnings: this.#earnings };
  }

  /** Null if the machine is not linked or the coordinator never answered. */
  async earnings(signal?: AbortSignal): Promise<EarningsView | null> {
    await this.#refreshEarnings(signal);
    return this.#earnings;
  }

  async #status(): Promise<Pick<StatusSnapshot, 'status' | 'problem'>> {
    try {
      return { status: await requestStatus(this.#dataDir, STATUS_MS), problem: null };
    } catch (error) {
      return { status: null, problem: error instanceof Error ? error.message : 'the provider is not responding' };
    }
  }

  /** Retains the last earnings while the coordinator does not answer, but not after the machine is unlinked. */
  async #refreshEarnings(signal?: AbortSignal): Promise<void> {
    if (performance.now() - this.#earningsAskedAt < EARNINGS_INTERVAL_MS) return;
    this.#earningsAskedAt = performance.now();
    try {
      const account = readAccount(this.#dataDir);
      if (account === null) {
        this.#earnings = null;
        return;
      }
      const ask = { days: 7, timeZone: this.#timeZone, ms: EARNINGS_MS, ...(signal === undefined ? {} : { signal }) };
      this.#earnings = viewOf(await fetchEarnings(account, ask), readActivity(this.#dataDir));
    } catch (error) {
      if (error instanceof Error && error.name === 'UnlinkedError') this.#earnings = null;
    }
  }
}
