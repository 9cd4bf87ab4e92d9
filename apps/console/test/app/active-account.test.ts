/** The account that a mailed link selects. */
import { expect, it } from 'vitest';
import { activeAccountId, takeFromAddress } from '../../src/api/active-account.js';

function addressBar(href: string) {
  const bar = {
    location: { href },
    history: { state: 7, replaceState: (state: unknown, _: string, url: string) => void bar.set(state, url) },
  };
  return Object.assign(bar, { set: (state: unknown, url: string) => Object.assign(bar.location, { href: url, state }) });
}

it('is taken from the address once, and leaves the rest of it', () => {
  const bar = addressBar('https://console.test/balance?range=7&account_id=acme#top');
  expect(takeFromAddress(bar)).toBe('acme');
  expect(bar.location).toEqual({ href: 'https://console.test/balance?range=7#top', state: 7 });
  expect(takeFromAddress(bar)).toBeNull();
  expect(takeFromAddress(addressBar('https://console.test/balance?account_id='))).toBeNull();
  // Without a browser, the personal account.
  expect([takeFromAddress({}), activeAccountId()]).toEqual([null, null]);
});
