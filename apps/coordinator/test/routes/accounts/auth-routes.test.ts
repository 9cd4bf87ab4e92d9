import type { TObject } from 'typebox';
import { Compile } from 'typebox/compile';
import { expect, it } from 'vitest';
import { AUTH_ROUTES } from '../../../src/routes/accounts/auth-routes.js';
import { startHarness } from '../../support/harness.js';

const password = 'long enough password';
const newPassword = 'another long password';

it('sign-in routes answer as their schemas declare, with no further members', async () => {
  const harness = await startHarness();
  let cookie = '';
  const post = async (path: string, body: object): Promise<void> => {
    const headers = { 'content-type': 'application/json', origin: harness.url, cookie };
    const response = await fetch(`${harness.url}/console/auth${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    const cookies = response.headers.getSetCookie().map((text) => text.split(';', 1)[0]);
    if (cookies.length > 0) cookie = cookies.join('; ');
    const declared = AUTH_ROUTES.find((route) => route.path === path)?.schema.response as { 200: TObject | { anyOf: TObject[] } };
    // The first alternative is the response for an account without two-factor authentication.
    const answered = 'anyOf' in declared[200] ? declared[200].anyOf[0] : declared[200];
    const schema = Compile({ ...answered, additionalProperties: false } as TObject);
    const answer = await response.json();
    expect([path, response.status, [...schema.Errors(answer)]]).toEqual([path, 200, []]);
  };
  try {
    await post('/sign-up/email', { name: 'Ada', email: 'ada@example.com', password });
    await post('/update-user', { name: 'Ada L.' });
    await post('/change-password', { currentPassword: password, newPassword });
    await post('/sign-out', {});
    await post('/sign-in/email', { email: 'ada@example.com', password: newPassword, callbackURL: '/account' });
    await post('/request-password-reset', { email: 'ada@example.com', redirectTo: '/reset-password' });
    await post('/send-verification-email', { email: 'ada@example.com', callbackURL: '/account' });
    await post('/delete-user', { password: newPassword });
  } finally {
    await harness.close();
  }
});
