import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isTransient, unavailableReason } from '../../src/eligibility.js';
import { ProviderPool } from '../../src/pool/provider-pool.js';
import { anyProvider, NOW, poolOf, provider, type TestProvider } from '../providers.js';

/** The content of a pool, independent of the order of changes. */
function told(pool: ProviderPool<string>) {
  const names = (members: readonly { subject: string }[]): string[] => members.map(({ subject }) => subject).sort();
  const groups = (list: string[]): string[] => list.sort();
  return {
    open: groups([...pool.open].map(({ traits, members }) => JSON.stringify([traits, names(members)]))),
    closed: groups(
      [...pool.closed].map(({ reason, hasHardwareTrust, members }) => JSON.stringify([reason, hasHardwareTrust, names(members)])),
    ),
    serials: ['S-1', 'S-2', 'S-m0'].map((serial) => names(pool.membersBySerial(serial))),
    size: pool.size,
    serving: pool.serving,
    slots: pool.slots,
    longest: pool.maxContextTokens,
  };
}

const steps = fc.array(
  fc
    .integer({ min: 0, max: 9 })
    .chain((index) => fc.option(anyProvider(`m${index}`), { freq: 3 }).map((changed) => ({ name: `m${index}`, changed }))),
  { maxLength: 60 },
);

describe('a provider pool', () => {
  it('after any changes equals one built afresh', () => {
    fc.assert(
      fc.property(steps, (changes) => {
        const pool = new ProviderPool<string>();
        const present = new Map<string, TestProvider>();
        for (const { name, changed } of changes) {
          // A provider's serial number is fixed.
          const serialNumber = `S-${Number(name.slice(1)) % 3}`;
          if (changed === null) {
            present.delete(name);
            pool.remove(name, provider(name).facts.providerId);
          } else {
            const facts = { ...changed.facts, serialNumber };
            present.set(name, { ...changed, facts });
            pool.put(name, facts, changed.speed, 8192, NOW);
          }
          if (changes.length % 2 === 0) expect(pool.maxContextTokens === null).toBe(pool.serving === 0);
        }
        expect(told(pool)).toEqual(told(poolOf([...present.values()])));
        const serving = [...present.values()].filter(({ facts }) => {
          const gate = unavailableReason(facts, NOW);
          return gate === null || isTransient(gate);
        });
        expect(pool.serving).toBe(serving.length);
        expect(pool.slots).toBe(serving.reduce((sum, { facts }) => sum + facts.slots, 0));
        const hardware = serving.filter(({ facts }) => facts.trustLevel === 'hardware');
        expect(pool.hardwareSlots).toBe(hardware.reduce((sum, { facts }) => sum + facts.slots, 0));
      }),
    );
  });

  it('is not emptied by the late end of a replaced session', () => {
    const pool = new ProviderPool<string>();
    const { facts, speed } = provider('a');
    pool.put('older', facts, speed, 8192, NOW);
    pool.put('newer', facts, speed, 16_384, NOW);
    pool.remove('older', facts.providerId);
    expect([...pool.members()].map(({ subject }) => subject)).toEqual(['newer']);
    expect(pool.maxContextTokens).toBe(16_384);
    pool.remove('newer', facts.providerId);
    expect(told(pool)).toEqual(told(new ProviderPool()));
  });
});
