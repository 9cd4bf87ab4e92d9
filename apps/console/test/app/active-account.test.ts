/** A link in a mail selects the account with `account_id` in its query. */
import { expect, it } from 'vitest';
import { activeAccountId, takeFromAddress } from '../../src/api/active-account.js';

function addressBar(href: string) {
  const location = { href };
  const history = {
    state: 7,
    replaceState(_state: unknown, _unused: string, url: string) {
      location.href = url;
    },
  };
  return { location, history };
}

it('is taken from the address once, and leaves the rest of it', () => {
  const bar = addressBar('https://console.test/balance?range=7&account_id=acme#top');
  expect(takeFromAddress(bar)).toBe('acme');
  expect(bar.location.href).toBe('https://console.test/balance?range=7#top');
  expect(takeFromAddress(bar)).toBeNull();
  expect(takeFromAddress(addressBar('https://console.test/balance?account_id='))).toBeNull();
  // Without a browser, no organisation is selected.
  expect([takeFromAddress({}), activeAccountId()]).toEqual([null, null]);
});
