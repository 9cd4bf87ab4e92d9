import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isTransient, unavailableReason } from '../src/eligibility.js';
import { ProviderPool } from '../src/provider-pool.js';
import { anyMachine, boardOf, type Machine, machine, NOW } from './providers.js';

/** The content of a pool, independent of the order of changes. */
function told(board: ProviderPool<string>) {
  const names = (members: readonly { subject: string }[]): string[] => members.map(({ subject }) => subject).sort();
  const groups = (list: string[]): string[] => list.sort();
  return {
    open: groups([...board.open].map(({ traits, members }) => JSON.stringify([traits, names(members)]))),
    closed: groups(
      [...board.closed].map(({ reason, hasHardwareTrust, members }) => JSON.stringify([reason, hasHardwareTrust, names(members)])),
    ),
    serials: ['S-1', 'S-2', 'S-m0'].map((serial) => names(board.membersBySerial(serial))),
    size: board.size,
    serving: board.serving,
    slots: board.slots,
    longest: board.maxContextTokens,
  };
}

const steps = fc.array(
  fc
    .integer({ min: 0, max: 9 })
    .chain((index) => fc.option(anyMachine(`m${index}`), { freq: 3 }).map((changed) => ({ name: `m${index}`, changed }))),
  { maxLength: 60 },
);

describe('a provider pool', () => {
  it('after any changes equals one built afresh', () => {
    fc.assert(
      fc.property(steps, (changes) => {
        const board = new ProviderPool<string>();
        const present = new Map<string, Machine>();
        for (const { name, changed } of changes) {
          // A provider's serial number is fixed.
          const serialNumber = `S-${Number(name.slice(1)) % 3}`;
          if (changed === null) {
            present.delete(name);
            board.remove(name, machine(name).facts.providerId);
          } else {
            const facts = { ...changed.facts, serialNumber };
            present.set(name, { ...changed, facts });
            board.put(name, facts, changed.speed, 8192, NOW);
          }
          if (changes.length % 2 === 0) expect(board.maxContextTokens === null).toBe(board.serving === 0);
        }
        expect(told(board)).toEqual(told(boardOf([...present.values()])));
        const serving = [...present.values()].filter(({ facts }) => {
          const gate = unavailableReason(facts, NOW);
          return gate === null || isTransient(gate);
        });
        expect(board.serving).toBe(serving.length);
        expect(board.slots).toBe(serving.reduce((sum, { facts }) => sum + facts.slots, 0));
        const hardware = serving.filter(({ facts }) => facts.trustLevel === 'hardware');
        expect(board.hardwareSlots).toBe(hardware.reduce((sum, { facts }) => sum + facts.slots, 0));
      }),
    );
  });

  it('is not emptied by the late end of a replaced session', () => {
    const board = new ProviderPool<string>();
    const { facts, speed } = machine('a');
    board.put('older', facts, speed, 8192, NOW);
    board.put('newer', facts, speed, 16_384, NOW);
    board.remove('older', facts.providerId);
    expect([...board.members()].map(({ subject }) => subject)).toEqual(['newer']);
    expect(board.maxContextTokens).toBe(16_384);
    board.remove('newer', facts.providerId);
    expect(told(board)).toEqual(told(new ProviderPool()));
  });
});
