import type { ProviderId } from '@inference/protocol';
import { describe, expect, it } from 'vitest';
import { type Candidate, chooseProvider } from '../src/fleet/placement.js';
import { type TrustEvidence, trustLevel } from '../src/fleet/trust.js';

const id = (name: string): ProviderId => name as ProviderId;

function candidate(name: string, changes: Partial<Candidate> = {}): Candidate {
  return { providerId: id(name), serialNumber: `S-${name}`, unroutable: null, slots: 4, usedSlots: 0, failuresInARow: 0, ...changes };
}

const anyone = { providerSerial: null, exclude: new Set<ProviderId>() };
const order = (candidates: Candidate[], request = anyone as Parameters<typeof chooseProvider>[1], random = () => 0): string[] => {
  const placement = chooseProvider(candidates, request, random);
  return placement.kind === 'placed' ? placement.ordered.map(({ providerId }) => providerId) : [placement.kind];
};

describe('placement', () => {
  it('prefers the least loaded by share of slots, and those that did not fail lately', () => {
    const half = candidate('half', { usedSlots: 2 });
    const third = candidate('third', { slots: 3, usedSlots: 1 });
    const idleButFailing = candidate('failing', { failuresInARow: 1 });
    expect(order([half, idleButFailing, third])).toEqual(['third', 'half', 'failing']);
  });

  it('is fair among equals', () => {
    const counts = new Map<string, number>();
    const equals = ['a', 'b', 'c'].map((name) => candidate(name));
    let seed = 1;
    const random = (): number => {
      seed = (seed * 48271) % 2147483647;
      return seed / 2147483647;
    };
    for (let i = 0; i < 3000; i++) {
      const [first] = order(equals, anyone, random);
      counts.set(first as string, (counts.get(first as string) ?? 0) + 1);
    }
    for (const count of counts.values()) expect(Math.abs(count - 1000)).toBeLessThan(120);
  });

  it('names the reason for everyone it passes over', () => {
    const placement = chooseProvider(
      [
        candidate('ok'),
        candidate('full', { usedSlots: 4 }),
        candidate('drains', { unroutable: 'draining' }),
        candidate('lied', { unroutable: 'quarantined' }),
        candidate('failed'),
      ],
      { providerSerial: null, exclude: new Set([id('failed')]) },
      () => 0,
    );
    expect(placement).toMatchObject({ kind: 'placed' });
    expect(placement.kind === 'placed' && Object.fromEntries(placement.passedOver)).toEqual({
      full: 'no_free_slot',
      drains: 'draining',
      lied: 'quarantined',
      failed: 'failed_before',
    });
  });

  it('waits only where waiting can help', () => {
    const none = (candidates: Candidate[], request: Parameters<typeof chooseProvider>[1]) => chooseProvider(candidates, request, () => 0);
    expect(none([candidate('a', { usedSlots: 4 })], anyone)).toMatchObject({ kind: 'busy' });
    expect(none([candidate('a', { unroutable: 'held_off' })], anyone)).toMatchObject({ kind: 'busy' });
    expect(none([candidate('a')], { ...anyone, exclude: new Set([id('a')]) })).toEqual({ kind: 'none', reason: 'all_failed' });
    expect(none([candidate('a')], { ...anyone, providerSerial: 'S-b' })).toEqual({ kind: 'none', reason: 'no_such_serial' });
    expect(none([candidate('a', { unroutable: 'quarantined' })], anyone)).toEqual({ kind: 'none', reason: 'none_routable' });
    expect(order([candidate('a'), candidate('b')], { ...anyone, providerSerial: 'S-b' })).toEqual(['b']);
  });
});

describe('trust', () => {
  const good: TrustEvidence = {
    attestationVerified: true,
    posture: { secure_enclave: true, sip_enabled: true, secure_boot_enabled: true, authenticated_root_enabled: true },
    admittedSimulation: false,
    challengePassedAt: 1000,
  };

  it('is self_signed with all the evidence, and nothing without any one piece of it', () => {
    expect(trustLevel(good, 1500, 1000)).toEqual({ level: 'self_signed', reason: null });
    const without: [Partial<TrustEvidence>, string][] = [
      [{ attestationVerified: false }, 'attestation_unverified'],
      [{ challengePassedAt: null }, 'challenge_unanswered'],
      [{ challengePassedAt: 400 }, 'challenge_stale'],
      [{ posture: { ...good.posture, secure_enclave: false } }, 'no_secure_enclave'],
      [{ posture: { ...good.posture, sip_enabled: false } }, 'sip_disabled'],
      [{ posture: { ...good.posture, secure_boot_enabled: false } }, 'secure_boot_disabled'],
    ];
    for (const [change, reason] of without) expect(trustLevel({ ...good, ...change }, 1500, 1000)).toEqual({ level: null, reason });
  });

  it('admits a simulation by the setting only, and never more than self_signed', () => {
    const simulated = { ...good, posture: { ...good.posture, secure_enclave: false } };
    expect(trustLevel({ ...simulated, admittedSimulation: true }, 1500, 1000).level).toBe('self_signed');
    expect(
      trustLevel({ ...simulated, admittedSimulation: true, posture: { ...simulated.posture, sip_enabled: false } }, 1500, 1000).level,
    ).toBeNull();
  });
});
