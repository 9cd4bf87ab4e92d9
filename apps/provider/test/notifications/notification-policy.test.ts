/** Which notifications the owner sees, in virtual time. */
import { beforeEach, describe, expect, it } from 'vitest';
import {
  FAILURES_BEFORE_NOTIFICATION,
  MIN_INTERVAL_MS,
  type NotificationEvent,
  NotificationPolicy,
  OFFLINE_MS,
  SLEEP_GAP_MS,
  TRUST_LOST_MS,
} from '../../src/notifications/notification-policy.js';

const MINUTE_MS = 60_000;
let now: number;
let policy: NotificationPolicy;
let isOn: boolean;

beforeEach(() => {
  now = 1_800_000_000_000;
  isOn = true;
  policy = new NotificationPolicy(now);
});

const bodies = (event: NotificationEvent): string[] => policy.on(event, now, isOn).map(({ body }) => body);
const kinds = (...events: NotificationEvent['type'][]): string[] =>
  events.flatMap((type) => policy.on({ type } as NotificationEvent, now, isOn).map(({ kind }) => kind));

/** Kinds shown while time passes, with a tick each minute. */
function pass(ms: number): string[] {
  const shown: string[] = [];
  for (const end = now + ms; now < end; ) {
    now += Math.min(MINUTE_MS, end - now);
    shown.push(...kinds('tick'));
  }
  return shown;
}

describe('the connection', () => {
  it('is reported once after ten minutes offline, and once when it is back', () => {
    kinds('connected');
    pass(60 * MINUTE_MS);
    kinds('disconnected');
    expect(pass(OFFLINE_MS - 1)).toEqual([]);
    expect(kinds('disconnected')).toEqual([]);
    expect(pass(1)).toEqual(['offline']);
    expect(pass(3 * 60 * MINUTE_MS)).toEqual([]);
    expect(bodies({ type: 'connected' })).toEqual(['This Mac is connected to the network again.']);
    expect(kinds('connected')).toEqual([]);
  });

  it('says nothing of short outages, also of many', () => {
    for (let outage = 0; outage < 50; outage++) {
      expect(kinds('disconnected')).toEqual([]);
      expect(pass(OFFLINE_MS - 1)).toEqual([]);
      expect(kinds('connected')).toEqual([]);
    }
  });

  it('is reported at most once an hour, and then only while it is still lost', () => {
    expect(pass(OFFLINE_MS)).toEqual(['offline']);
    expect(kinds('connected', 'disconnected')).toEqual(['online']);
    expect(pass(MIN_INTERVAL_MS - 1)).toEqual([]);
    expect(pass(1)).toEqual(['offline']);
    pass(5 * MINUTE_MS);
    expect(kinds('connected')).toEqual(['online']);
    kinds('disconnected');
    pass(20 * MINUTE_MS);
    // Never announced, and so never over.
    expect(kinds('connected')).toEqual([]);
  });

  it('does not count the time that the Mac slept', () => {
    kinds('connected', 'disconnected');
    now += 8 * 60 * MINUTE_MS;
    expect(kinds('tick')).toEqual([]);
    expect(pass(OFFLINE_MS - 1)).toEqual([]);
    now += SLEEP_GAP_MS;
    expect(kinds('connected')).toEqual([]);
  });
});

describe('failures', () => {
  const fail = (count: number): string[] => kinds(...Array<'job_failed'>(count).fill('job_failed'));

  it('of requests are reported after several in a row', () => {
    expect(fail(FAILURES_BEFORE_NOTIFICATION - 1)).toEqual([]);
    expect(kinds('job_completed')).toEqual([]);
    expect(fail(FAILURES_BEFORE_NOTIFICATION - 1)).toEqual([]);
    expect(bodies({ type: 'job_failed' })).toEqual(['The last 5 requests failed on this Mac. Run: inference-provider doctor']);
    expect(fail(1000)).toEqual([]);
    pass(MIN_INTERVAL_MS);
    expect(fail(1000)).toEqual(['requests_failing']);
  });

  it('of a model name it, without characters that could mislead', () => {
    expect(bodies({ type: 'model_disabled', model: 'qwen"\n\u202e & rm' })).toEqual([
      expect.stringMatching(/^The model qwen[^\n\u202e]* cannot be loaded\. Run: inference-provider status$/),
    ]);
    expect(bodies({ type: 'model_disabled', model: 'other' })).toEqual([]);
    pass(MIN_INTERVAL_MS);
    expect(bodies({ type: 'model_disabled', model: 'x'.repeat(10_000) })[0]?.length).toBeLessThan(250);
  });

  it('of trust are reported once the lower level has lasted', () => {
    const trust = (level: 'none' | 'self_signed' | 'hardware') => bodies({ type: 'trust', level });
    kinds('connected');
    expect(trust('none')).toEqual([]);
    expect(trust('hardware')).toEqual([]);
    expect(trust('self_signed')).toEqual([]);
    expect(pass(TRUST_LOST_MS - 1)).toEqual([]);
    expect(trust('hardware')).toEqual([]);
    // A new connection begins without evidence.
    kinds('disconnected', 'connected');
    expect(trust('none')).toEqual([]);
    pass(TRUST_LOST_MS - 1);
    trust('self_signed');
    now += 1;
    expect(bodies({ type: 'tick' })).toEqual(['The trust level fell from hardware to self-signed. Run: inference-provider status']);
    expect(pass(4 * 60 * MINUTE_MS)).toEqual([]);
    trust('none');
    expect(pass(TRUST_LOST_MS)).toEqual(['trust_lost']);
  });
});

describe('earnings', () => {
  const earned = (usd: number, account: string | null = 'Ada') =>
    bodies({ type: 'earnings', earnings: { account, microUsd: Math.round(usd * 1_000_000) } });

  it('are reported at the first and at milestones, from known totals of one account', () => {
    expect(earned(0)).toEqual([]);
    expect(earned(0.0001)).toEqual(['Your account received its first earnings.']);
    pass(MIN_INTERVAL_MS);
    expect(earned(0.9)).toEqual([]);
    expect(earned(1)).toEqual(['Your account has earned $1 in total.']);
    pass(MIN_INTERVAL_MS);
    expect(earned(1500)).toEqual(['Your account has earned $1,000 in total.']);
    pass(MIN_INTERVAL_MS);
    // Another account's total is not comparable, and one that fell is a correction.
    expect(earned(20_000, 'Bob')).toEqual([]);
    expect(earned(5, 'Bob')).toEqual([]);
    expect(earned(7, 'Bob')).toEqual([]);
  });

  it('within an hour of another notification arrive after it, the highest milestone only', () => {
    earned(0);
    expect(earned(0.5)).toHaveLength(1);
    expect(earned(2)).toEqual([]);
    expect(earned(11)).toEqual([]);
    now += MIN_INTERVAL_MS;
    expect(bodies({ type: 'tick' })).toEqual(['Your account has earned $10 in total.']);
    now += MIN_INTERVAL_MS;
    expect(bodies({ type: 'tick' })).toEqual([]);
  });

  it('of an old account are no news at the start', () => {
    expect(earned(123)).toEqual([]);
    expect(earned(124)).toEqual([]);
  });
});

it('reports updates that need the owner', () => {
  expect(bodies({ type: 'update_ready', version: '1.2.3' })).toEqual([
    'Version 1.2.3 is ready. To install it, run: inference-provider update',
  ]);
  expect(kinds('version_unsupported')).toEqual([]);
  pass(MIN_INTERVAL_MS);
  expect(kinds('version_unsupported')).toEqual(['update']);
});

it('is quiet when turned off, and reports current problems when turned on', () => {
  isOn = false;
  expect(bodies({ type: 'model_disabled', model: 'one' })).toEqual([]);
  expect(pass(OFFLINE_MS)).toEqual([]);
  isOn = true;
  expect(pass(MINUTE_MS)).toEqual(['offline']);
  expect(bodies({ type: 'model_disabled', model: 'one' })).toHaveLength(1);
});

it('shows at most one notification of each kind an hour, for all events', () => {
  const shown = new Map<string, number[]>();
  const events: NotificationEvent[] = [
    { type: 'model_disabled', model: 'one' },
    { type: 'job_failed' },
    { type: 'version_unsupported' },
    { type: 'trust', level: 'hardware' },
    { type: 'disconnected' },
    { type: 'connected' },
    { type: 'trust', level: 'none' },
  ];
  for (let step = 0; step < 5000; step++) {
    now += ((step * 7919) % 90) * 1000;
    for (const { kind } of policy.on(events[(step * 31) % events.length] as NotificationEvent, now, true)) {
      shown.set(kind, [...(shown.get(kind) ?? []), now]);
    }
  }
  expect(shown.size).toBeGreaterThan(2);
  for (const times of shown.values()) {
    for (const [index, at] of times.entries())
      if (index > 0) expect(at - (times[index - 1] as number)).toBeGreaterThanOrEqual(MIN_INTERVAL_MS);
  }
});
