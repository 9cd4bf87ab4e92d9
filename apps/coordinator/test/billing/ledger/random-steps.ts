/** Steps with ordinary values, of which a test changes one or two. */
import { randomUUID } from 'node:crypto';
import type { JobId, ProviderId } from '@inference/protocol';
import type { Ledger, Reservation, Settlement } from '../../../src/billing/ledger/ledger.js';
import { type LedgerOptions, openLedger } from '../../../src/billing/ledger/sql-ledger.js';
import { microUsd } from '../../../src/billing/micro-usd.js';
import type { Price } from '../../../src/billing/prices/price.js';
import type { Database } from '../../../src/database/tables.js';

/** One micro-USD per token, and ten per image, for simple costs. */
export const PLAIN_PRICE: Price = {
  id: 'plain',
  model: 'm',
  promptPerMillion: microUsd(1_000_000),
  completionPerMillion: microUsd(1_000_000),
  perImage: microUsd(10),
  validFrom: 0,
};

export const T0 = Date.UTC(2026, 0, 15, 12);
export const PROVIDER = 'f'.repeat(32) as ProviderId;

export function newJob(): JobId {
  return randomUUID() as JobId;
}

/** Opens a ledger that pays providers 90 %. Errors of its background work fail the test. */
export function openTestLedger(database: Database, options: Partial<LedgerOptions> = {}): Promise<Ledger> {
  return openLedger({
    database,
    providerSharePercent: 90,
    ownMachinesFree: false,
    now: () => T0,
    onError: (error) => {
      throw error;
    },
    ...options,
  });
}

/** Reserves 100 micro-USD by default. */
export function reservation(over: Partial<Reservation> = {}): Reservation {
  return {
    jobId: newJob(),
    accountId: 'customer',
    apiKeyId: 'key',
    keySpendLimit: null,
    model: 'm',
    endpoint: '/v1/chat/completions',
    price: PLAIN_PRICE,
    maxPromptTokens: 40,
    maxCompletionTokens: 60,
    at: T0,
    ...over,
  };
}

/** Uses 10 prompt and 20 completion tokens by default. */
export function settlement(jobId: JobId, over: Partial<Settlement> = {}): Settlement {
  return { jobId, providerId: PROVIDER, promptTokens: 10, completionTokens: 20, hiddenTokens: 5, cachedTokens: 0, at: T0, ...over };
}

export async function give(ledger: Ledger, accountId: string, amount: number): Promise<void> {
  await ledger.deposit({ eventId: randomUUID(), accountId, amount: microUsd(amount), source: 'development', at: T0 });
}
