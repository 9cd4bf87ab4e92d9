import { describe, expect, it } from 'vitest';
import { KnownBrowsers } from '../../../src/accounts/known-browsers.js';
import { networkOf } from '../../../src/limits/network-address.js';
import { localAttempts } from '../../../src/routes/plugins/attempt-limit.js';
import { type SignInAttempt, type SignInClient, SignInLimits } from '../../../src/routes/plugins/sign-in-limits.js';

const QUARTER_MS = 15 * 60_000;

describe('sign-in limits', () => {
  let time = 1_790_000_000_000;
  const pauses: (() => void)[] = [];
  const open = (maxPerQuarterHour: number): SignInLimits =>
    new SignInLimits({
      maxPerQuarterHour,
      now: () => time,
      pause: (_, signal) =>
        new Promise((resolve, reject) => {
          pauses.push(resolve);
          signal.addEventListener('abort', () => reject(signal.reason));
        }),
    });
  const stranger = (index: number): SignInClient => ({ email: 'ada@example.com', network: `10.0.0.${index}`, knownBrowserId: null });
  const NEVER = new AbortController().signal;
  const attempt = async (limits: SignInLimits, client: SignInClient): Promise<SignInAttempt> => {
    const begun = await limits.begin(client);
    if ('by' in begun) throw new Error(`blocked by ${begun.by}`);
    return begun;
  };

  it('slow down many strangers without locking out anyone', async () => {
    const limits = open(2);
    await limits.recordSuccess({ email: 'ada@example.com', network: '192.0.2.1', knownBrowserId: null });
    for (let index = 0; index < 20; index++) expect((await attempt(limits, stranger(index))).isDelayed).toBe(false);
    for (let index = 100; index < 150; index++) expect((await attempt(limits, stranger(index))).isDelayed).toBe(true);
    expect((await attempt(limits, { email: 'ada@example.com', network: '192.0.2.1', knownBrowserId: null })).isDelayed).toBe(false);
    expect((await attempt(limits, { email: 'ada@example.com', network: '10.0.0.1', knownBrowserId: 'a browser' })).isDelayed).toBe(false);
    expect((await attempt(limits, { email: 'ben@example.com', network: '10.0.0.1', knownBrowserId: null })).isDelayed).toBe(false);
    const slowed = limits.delay(stranger(100), NEVER);
    // One delayed attempt per client at a time.
    expect(await limits.delay(stranger(100), NEVER)).toBe(false);
    const left = new AbortController();
    const gone = limits.delay(stranger(101), left.signal);
    left.abort(new Error('left'));
    await expect(gone).rejects.toThrow('left');
    for (const end of pauses.splice(0)) end();
    expect(await slowed).toBe(true);
    time += QUARTER_MS;
    expect((await attempt(limits, stranger(200))).isDelayed).toBe(false);
  });

  it('count no attempt while one of the counters cannot be reached', async () => {
    const attempts = localAttempts(() => time);
    let isBroken = true;
    const limits = new SignInLimits({
      maxPerQuarterHour: 2,
      now: () => time,
      pause: async () => {},
      attempts: {
        ...attempts,
        counter(name, limit) {
          const counter = attempts.counter(name, limit);
          const count = async (key: string) => {
            if (isBroken && name === 'sign-ins of a network') throw new Error('unreachable');
            return counter.count(key);
          };
          return { count, refund: (key) => counter.refund(key) };
        },
      },
    });
    for (let round = 0; round < 5; round++) await expect(limits.begin(stranger(1))).rejects.toThrow('unreachable');
    isBroken = false;
    await attempt(limits, stranger(1));
    await attempt(limits, stranger(1));
    expect(await limits.begin(stranger(1))).toMatchObject({ by: 'email' });
  });

  it('count an attempt once, and not after a refund', async () => {
    const limits = open(2);
    for (let round = 0; round < 50; round++) {
      const begun = await attempt(limits, stranger(1));
      await begun.refund();
      await begun.refund();
    }
    await attempt(limits, stranger(1));
    await attempt(limits, stranger(1));
    expect(await limits.begin(stranger(1))).toEqual({ by: 'email', retryAfter: QUARTER_MS / 1000 });
  });

  it('of a blocked network use up none of the attempts of its clients', async () => {
    const limits = open(2);
    const from = (email: string): SignInClient => ({ email, network: '10.0.0.1', knownBrowserId: null });
    const others = Array.from({ length: 20 }, (_, index) => from(`${index}@example.com`));
    const [first] = await Promise.all(others.map((client) => attempt(limits, client)));
    for (let index = 0; index < 5; index++) expect(await limits.begin(from('ada@example.com'))).toMatchObject({ by: 'network' });
    await first?.refund();
    await attempt(limits, from('ada@example.com'));
  });

  it('count no e-mail that another limit refuses', async () => {
    const limits = open(2);
    const mail = (network: string) => limits.admitMail({ email: 'ada@example.com', network, knownBrowserId: null });
    for (let index = 0; index < 20; index++) expect(await mail(`10.0.1.${index}`)).toBe(true);
    for (let index = 0; index < 5; index++) expect(await mail('192.0.2.1')).toBe(false);
    // A sign-in makes the client known, so that only its own limit applies.
    await limits.recordSuccess({ email: 'ada@example.com', network: '192.0.2.1', knownBrowserId: null });
    for (let index = 0; index < 5; index++) expect(await mail('192.0.2.1')).toBe(true);
    expect(await mail('192.0.2.1')).toBe(false);
  });

  it('are not reset by refunded attempts beyond them', async () => {
    const limits = open(2);
    for (let index = 0; index < 20; index++) await attempt(limits, stranger(index));
    for (let index = 30; index < 60; index++) await (await attempt(limits, stranger(index))).refund();
    expect((await attempt(limits, stranger(70))).isDelayed).toBe(true);
  });
});

describe('a known browser', () => {
  const devices = new KnownBrowsers({ secret: 'x'.repeat(32), cookiePrefix: 'inference', isHttps: true });
  const cookieOf = (setCookie: string): string => setCookie.split(';')[0] as string;

  it('is known for the addresses that signed in there last, and for no other', () => {
    let cookies = 'other=1';
    expect(devices.idOf(cookies, 'ada@example.com')).toBeNull();
    const set = devices.cookieFor(cookies, 'ada@example.com');
    expect(set).toMatch(/^__Host-inference\.device=[^;]+; Max-Age=31536000; Path=\/; HttpOnly; SameSite=Lax; Secure$/);
    cookies = `other=1; ${cookieOf(set)}`;
    const id = devices.idOf(cookies, 'ada@example.com');
    expect(id).toMatch(/^[A-Za-z0-9_-]{22}$/);
    expect(devices.idOf(cookies, 'ben@example.com')).toBeNull();
    for (let index = 0; index < 4; index++) cookies = cookieOf(devices.cookieFor(cookies, `person-${index}@example.com`));
    expect(devices.idOf(cookies, 'ada@example.com')).toBe(id);
    cookies = cookieOf(devices.cookieFor(cookies, 'ben@example.com'));
    expect(devices.idOf(cookies, 'ada@example.com')).toBeNull();
    expect(devices.idOf(cookies, 'ben@example.com')).toBe(id);
  });

  it('cannot be forged', () => {
    const good = cookieOf(devices.cookieFor(undefined, 'ada@example.com'));
    const forged = new KnownBrowsers({ secret: 'y'.repeat(32), cookiePrefix: 'inference', isHttps: true });
    for (const cookies of [
      cookieOf(forged.cookieFor(undefined, 'ada@example.com')),
      good.replace(/=./, (start) => (start === '=A' ? '=B' : '=A')),
      good.slice(0, -1),
      `${good}.`,
      '__Host-inference.device=',
    ]) {
      expect(devices.idOf(cookies, 'ada@example.com'), cookies).toBeNull();
    }
  });
});

it('an IPv6 address counts as its network', () => {
  for (const [address, network] of [
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0DB8:1:2::9', '2001:db8:1:2::/64'],
    ['2001:db8::9', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ] as const) {
    expect(networkOf(address)).toBe(network);
  }
});
