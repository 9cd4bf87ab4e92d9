/** `runJobs`: reserves and settles jobs on a ledger, as fast as possible with a fixed number at once. No provider runs them. */
import { randomUUID } from 'node:crypto';
import type { JobId, ProviderId } from '@inference/protocol';
import type { Ledger } from '../../../apps/coordinator/dist/billing/ledger/ledger.js';
import { type MicroUsd, microUsd } from '../../../apps/coordinator/dist/billing/micro-usd.js';
import type { Price } from '../../../apps/coordinator/dist/billing/prices/price.js';
import { median } from '../statistics.js';

const BENCH_PRICE: Price = {
  id: 'bench',
  model: 'bench/model',
  promptPerMillion: microUsd(50_000),
  completionPerMillion: microUsd(200_000),
  perImage: microUsd(2_000),
  validFrom: 0,
};

interface JobsOptions {
  readonly jobCount: number;
  readonly concurrency: number;
  /** Paying accounts, in rotation. */
  readonly accounts: readonly string[];
  /** Earning providers, in rotation. */
  readonly providers: readonly ProviderId[];
}

export interface JobsResult {
  readonly jobsPerSecond: number;
  /** CPU time of this process, user and system, in microseconds per job. */
  readonly cpuUsPerJob: number;
  readonly medianReserveMs: number;
  /** Sum of the charges, in micro-USD. */
  readonly cost: number;
}

/** Rejects if a reservation is refused or a job costs nothing. */
export async function runJobs(ledger: Ledger, options: JobsOptions): Promise<JobsResult> {
  let next = 0;
  let cost = 0;
  const reserveDurationsMs: number[] = [];
  const worker = async (): Promise<void> => {
    for (let index = next++; index < options.jobCount; index = next++) {
      const jobId = randomUUID() as JobId;
      const accountId = options.accounts[index % options.accounts.length] as string;
      const providerId = options.providers[index % options.providers.length] as ProviderId;
      const at = Date.now();
      const reserveStartMs = performance.now();
      const reserved = await ledger.reserve({
        jobId,
        accountId,
        apiKeyId: `key-${accountId}`,
        keySpendLimit: null,
        model: BENCH_PRICE.model,
        endpoint: '/v1/chat/completions',
        price: BENCH_PRICE,
        maxPromptTokens: 900,
        maxCompletionTokens: 8192,
        at,
      });
      reserveDurationsMs.push(performance.now() - reserveStartMs);
      if (reserved.kind !== 'reserved') throw new Error(`a job was refused: ${reserved.kind}`);
      const usage = { promptTokens: 100 + (index % 300), completionTokens: 50 + (index % 500), hiddenTokens: 0, cachedTokens: 0 };
      const settled = await ledger.settle({ jobId, providerId, ...usage, at });
      if (settled.kind !== 'settled' || settled.cost <= 0) throw new Error(`a job was not charged: ${settled.kind}`);
      cost += settled.cost;
    }
  };
  const cpuBefore = process.cpuUsage();
  const startMs = performance.now();
  await Promise.all(Array.from({ length: options.concurrency }, worker));
  const seconds = (performance.now() - startMs) / 1000;
  const used = process.cpuUsage(cpuBefore);
  return {
    jobsPerSecond: options.jobCount / seconds,
    cpuUsPerJob: (used.user + used.system) / options.jobCount,
    medianReserveMs: median(reserveDurationsMs),
    cost,
  };
}

export async function depositInto(ledger: Ledger, accounts: readonly string[], amount: MicroUsd): Promise<void> {
  await Promise.all(
    accounts.map((accountId) => ledger.deposit({ eventId: randomUUID(), accountId, amount, source: 'development', at: Date.now() })),
  );
}
