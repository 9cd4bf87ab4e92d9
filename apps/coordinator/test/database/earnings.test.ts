/** Earnings that the coordinator reports to a provider: today and lifetime, before and after the provider is linked. */
import type { ProviderId } from '@inference/protocol';
import { expect, it } from 'vitest';
import { readProviderEarnings } from '../../src/database/earnings-repository.js';
import { give, openTestLedger, PROVIDER, reservation, settlement, T0 } from '../billing/ledger/random-steps.js';
import { describeDatabases } from '../support/databases.js';

const DAY = 86_400_000;
/** The provider's share of a test job, which costs 30 micro-USD. */
const EARNED = 27;

describeDatabases('earnings of a provider', (fresh) => {
  it('cover today and the lifetime, of the provider and then of its owner', async () => {
    const place = await fresh();
    const database = await place.open();
    const ledger = await openTestLedger(database, { onError: () => undefined });
    const other = 'e'.repeat(32) as ProviderId;
    const serve = async (at: number, providerId: ProviderId = PROVIDER): Promise<void> => {
      const job = reservation({ at });
      await ledger.reserve(job);
      expect(await ledger.settle(settlement(job.jobId, { at, providerId }))).toMatchObject({ kind: 'settled' });
    };
    try {
      await give(ledger, 'customer', 1_000_000);
      expect(await readProviderEarnings(database, PROVIDER, T0)).toEqual({ of: 'machine', today: 0, total: 0 });
      await serve(T0 - DAY);
      await serve(T0 - 60_000);
      await serve(T0);
      await serve(T0, other);
      expect(await readProviderEarnings(database, PROVIDER, T0)).toEqual({ of: 'machine', today: 2 * EARNED, total: 3 * EARNED });
      expect(await readProviderEarnings(database, PROVIDER, T0 + DAY)).toEqual({ of: 'machine', today: 0, total: 3 * EARNED });
      await ledger.linkProvider(PROVIDER, 'owner', T0);
      await ledger.linkProvider(other, 'owner', T0);
      const whole = { of: 'account', today: 3 * EARNED, total: 4 * EARNED };
      expect(await readProviderEarnings(database, PROVIDER, T0)).toEqual(whole);
      expect(await readProviderEarnings(database, other, T0)).toEqual(whole);
    } finally {
      await ledger.close();
      await database.destroy();
      await place.remove();
    }
  });
});
