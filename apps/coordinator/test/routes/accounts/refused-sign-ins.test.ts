import { afterEach, expect, it, vi } from 'vitest';
import { SignInQueue, SignInQueueFull } from '../../../src/accounts/passwords/sign-in-queue.js';
import { Browser, PASSWORD } from '../../support/console-client.js';
import { errorOf, type Harness, NO_RATE_LIMITS, startHarness } from '../../support/harness.js';

let harness: Harness;
afterEach(async () => {
  vi.restoreAllMocks();
  await harness.close();
});

it('a sign-in refused by the full queue changes nothing: no reset link is used up, no attempt counted', async () => {
  harness = await startHarness({ config: { rateLimits: { ...NO_RATE_LIMITS, emailPerQuarterHour: 2 } } });
  const person = new Browser(harness.url);
  await person.signUp('ada@example.com');
  await person.post('/console/auth/request-password-reset', { email: 'ada@example.com' });
  const link = (): string => harness.log.find((line) => line.includes('reset_password')) ?? '';
  await harness.until(() => link() !== '');
  const token = /reset-password\/([^?]+)/.exec(link())?.[1];
  const newPassword = 'another long password';
  const full = vi.spyOn(SignInQueue.prototype, 'run');
  for (const [scope, status] of [
    ['client', 429],
    ['all', 503],
  ] as const) {
    full.mockRejectedValueOnce(new SignInQueueFull(scope));
    const refused = await person.post('/console/auth/reset-password', { newPassword, token });
    expect([refused.status, (await errorOf(refused)).code]).toEqual([status, scope === 'client' ? 'rate_limit_exceeded' : 'overloaded']);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
  }
  expect((await person.post('/console/auth/reset-password', { newPassword, token })).status).toBe(200);
  const stranger = new Browser(harness.url);
  for (let index = 0; index < 5; index++) {
    full.mockRejectedValueOnce(new SignInQueueFull('client'));
    expect((await stranger.signIn('ada@example.com', newPassword)).status).toBe(429);
  }
  expect((await stranger.signIn('ada@example.com', PASSWORD)).status).toBe(401);
  expect((await stranger.signIn('ada@example.com', newPassword)).status).toBe(200);
});
