import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type DeviceNeeds,
  decide,
  failuresInARow,
  lastFailure,
  type PastCommand,
  SCHEDULE_RULES,
} from '../../src/devices/command-policy.js';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const T0 = 1_790_000_000_000;

function past(outcome: string | null, sentAt: number, endedAt: number | null = sentAt + 1000): PastCommand {
  return { uuid: `u-${sentAt}`, sentAt, expiresAt: sentAt + SCHEDULE_RULES.commandLifetimeMs, endedAt, outcome };
}

function needs(change: Partial<DeviceNeeds>): DeviceNeeds {
  return { kind: 'security_info', history: [], certifiedAt: null, reconnectedAt: null, ...change };
}

const at = (change: Partial<DeviceNeeds>, now: number) => decide(needs(change), now, SCHEDULE_RULES);

/** When a paused device is queried again, and the reason of the pause. */
function nextAsk(change: Partial<DeviceNeeds>, now: number): { readonly after: number; readonly reason: string } {
  const decision = at(change, now);
  if (decision.act === 'send') return { after: 0, reason: 'none' };
  expect(at(change, decision.until - 1)).toMatchObject({ act: 'wait' });
  expect(at(change, decision.until)).toMatchObject({ act: 'send' });
  return { after: decision.until - now, reason: decision.reason };
}

describe('the command policy', () => {
  it('queries an unknown device at once', () => {
    expect(at({}, T0)).toEqual({ act: 'send', reason: 'first' });
    expect(at({ kind: 'device_information' }, T0)).toEqual({ act: 'send', reason: 'first' });
  });

  it('waits for an answer until the command expires, and then repeats the query', () => {
    const history = [past(null, T0, null)];
    expect(at({ history }, T0 + 1000)).toMatchObject({
      act: 'wait',
      reason: 'awaiting_answer',
      until: T0 + SCHEDULE_RULES.commandLifetimeMs,
    });
    const late = T0 + SCHEDULE_RULES.commandLifetimeMs;
    expect([lastFailure(history, late), failuresInARow(history, late)]).toEqual(['unanswered', 1]);
    expect(at({ history }, late)).toMatchObject({ act: 'wait', reason: 'failed_before' });
    expect(nextAsk({ history }, late).after).toBeLessThanOrEqual(1.2 * SCHEDULE_RULES.firstRetryMs);
  });

  it('reports no failure for a pending command, and those before it', () => {
    const pending = past(null, T0, null);
    expect([lastFailure([pending], T0 + 1000), failuresInARow([pending], T0 + 1000)]).toEqual([null, 0]);
    const failed = [pending, past('device_error', T0 - HOUR), past('taken', T0 - 2 * HOUR)];
    expect([lastFailure(failed, T0 + 1000), failuresInARow(failed, T0 + 1000)]).toEqual(['device_error', 1]);
    const twoPending = [pending, past(null, T0 - 1000, null), ...failed.slice(1)];
    expect([lastFailure(twoPending, T0 + 1000), failuresInARow(twoPending, T0 + 1000)]).toEqual(['device_error', 1]);
    const behindEnded = [past('taken', T0), past(null, T0 - 1000, null)];
    expect([lastFailure(behindEnded, T0 + 1000), failuresInARow(behindEnded, T0 + 1000)]).toEqual([null, 0]);
    const failedAfter = [past('device_error', T0), past(null, T0 - 1000, null), past('taken', T0 - HOUR)];
    expect(failuresInARow(failedAfter, T0 + 1000)).toBe(1);
  });

  it('queries protections hourly, with intervals that differ between devices', () => {
    const pauses = [1, 2, 3, 4, 5].map((n) => nextAsk({ history: [past('taken', T0 + n)] }, T0 + n).after);
    for (const pause of pauses) expect(pause >= HOUR && pause <= 1.2 * HOUR).toBe(true);
    expect(new Set(pauses).size).toBeGreaterThan(1);
  });

  it('queries doubted protections at once, but at most every minute', () => {
    const history = [past('taken', T0)];
    expect(at({ history, reconnectedAt: T0 + 60_000 }, T0 + 60_000)).toEqual({ act: 'send', reason: 'doubted' });
    expect(at({ history, reconnectedAt: T0 + 1 }, T0 + 5000)).toMatchObject({ act: 'wait', reason: 'just_asked', until: T0 + 60_000 });
    // The answer is newer than the contradiction, which is therefore resolved.
    expect(at({ history, reconnectedAt: T0 - 1 }, T0 + 60_000)).toMatchObject({ act: 'wait', reason: 'fresh' });
  });

  it('renews a certificate after a week', () => {
    const history = [past('taken', T0)];
    const next = nextAsk({ kind: 'device_information', history, certifiedAt: T0 }, T0 + 1000);
    expect(next.reason).toBe('certificate_young');
    expect(next.after >= 7 * DAY - 1000 && next.after <= 7.2 * DAY).toBe(true);
    expect(at({ kind: 'device_information', history, certifiedAt: T0 }, T0 + 8 * DAY)).toEqual({ act: 'send', reason: 'renew' });
  });

  it('limits queries for a certificate that the device does not renew', () => {
    const history = [past('taken', T0 + 8 * DAY)];
    expect(nextAsk({ kind: 'device_information', history, certifiedAt: T0 }, T0 + 8 * DAY + 1000).after).toBeGreaterThan(11 * HOUR);
  });

  it('repeats the query half a day after a cached attestation', () => {
    const history = [past('stale_attestation', T0)];
    const next = nextAsk({ kind: 'device_information', history }, T0 + 1000);
    expect(next.reason).toBe('stale_attestation');
    expect(next.after >= 12 * HOUR && next.after <= 1.2 * 12 * HOUR).toBe(true);
    // Cached attestations are no failures that add up: after a week the device issues a new one.
    const often = Array.from({ length: 14 }, (_, i) => past('stale_attestation', T0 - i * 12 * HOUR));
    expect(nextAsk({ kind: 'device_information', history: often }, T0 + 1000).reason).toBe('stale_attestation');
  });

  it('pauses longer after each failure, and finally for a day', () => {
    let before = 0;
    for (let failures = 1; failures < SCHEDULE_RULES.giveUpAfter; failures++) {
      const history = Array.from({ length: failures }, () => past('device_error', T0));
      const { after, reason } = nextAsk({ history }, T0 + 1000);
      expect(reason).toBe('failed_before');
      expect(after >= before).toBe(true);
      before = after;
    }
    expect(before).toBeLessThanOrEqual(1.2 * SCHEDULE_RULES.maxRetryMs);
    const history = Array.from({ length: SCHEDULE_RULES.giveUpAfter }, () => past('unanswered', T0));
    const next = nextAsk({ history }, T0 + 1000);
    expect(next.reason).toBe('given_up');
    expect(next.after).toBeGreaterThanOrEqual(DAY);
    // A success resets the number of failures.
    expect(at({ history: [past('taken', T0), ...history] }, T0 + 1000)).toMatchObject({ act: 'wait', reason: 'fresh' });
  });

  it('never sends while a command is pending, never waits for the past, and is deterministic', () => {
    const outcome = fc.constantFrom(
      null,
      'taken',
      'unanswered',
      'not_sent',
      'device_error',
      'stale_attestation',
      'no_attestation',
      'refused',
    );
    const command = fc.record({ outcome, ago: fc.integer({ min: 0, max: 10 * DAY }), took: fc.integer({ min: 0, max: 600_000 }) });
    const state = fc.record({
      kind: fc.constantFrom('security_info' as const, 'device_information' as const),
      commands: fc.array(command, { maxLength: 12 }),
      certified: fc.option(fc.integer({ min: 0, max: 40 * DAY })),
      doubted: fc.option(fc.integer({ min: 0, max: DAY })),
    });
    fc.assert(
      fc.property(state, ({ kind, commands, certified, doubted }) => {
        const history = commands
          .map(({ outcome, ago, took }) => past(outcome, T0 - ago, outcome === null ? null : T0 - ago + took))
          .sort((a, b) => b.sentAt - a.sentAt);
        const change = {
          kind,
          history,
          certifiedAt: certified === null ? null : T0 - certified,
          reconnectedAt: doubted === null ? null : T0 - doubted,
        };
        const decision = at(change, T0);
        const awaited = history[0]?.outcome === null && T0 < history[0].expiresAt;
        if (awaited) expect(decision).toMatchObject({ act: 'wait', reason: 'awaiting_answer' });
        if (decision.act === 'wait') {
          expect(decision.until).toBeGreaterThan(T0);
          if (!awaited) expect(at(change, decision.until)).toMatchObject({ act: 'send' });
        }
      }),
      { numRuns: 2000 },
    );
  });
});
