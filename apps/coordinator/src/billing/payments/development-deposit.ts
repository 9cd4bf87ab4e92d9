/** Money for the account of development mode, once, so that the first request of a newcomer is paid for. */
import type { Ledger } from '../ledger/ledger.js';
import { microUsd } from '../micro-usd.js';

/** 100 dollars. */
export const DEVELOPMENT_DEPOSIT = microUsd(100_000_000);

/** Idempotent: an account gets it once, however often the coordinator starts. */
export async function ensureDevelopmentDeposit(ledger: Pick<Ledger, 'deposit'>, accountId: string, now: number): Promise<void> {
  await ledger.deposit({ eventId: `development:${accountId}`, accountId, amount: DEVELOPMENT_DEPOSIT, source: 'development', at: now });
}
