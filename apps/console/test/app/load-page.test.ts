/** Loading of page modules when a release has replaced them, and offline. */
import { beforeEach, expect, it } from 'vitest';
import { loadPage } from '../../src/app/load-page.js';
import { errorText } from '../../src/ui/feedback/error-state.js';

const failed = () => Promise.reject(new TypeError('Failed to fetch dynamically imported module: https://gateway.example/assets/a.js'));
const items = new Map<string, string>();
const storage = {
  getItem: (name: string) => items.get(name) ?? null,
  setItem: (name: string, value: string) => void items.set(name, value),
  removeItem: (name: string) => void items.delete(name),
};
let reloads = 0;
const browser = (isOnline: boolean) => ({ isOnline: () => isOnline, reload: () => void reloads++, storage });
const textOf = (attempt: Promise<unknown>) => attempt.then(() => '', errorText);

beforeEach(() => {
  items.clear();
  reloads = 0;
});

it('loads the document again once, because a release renames the modules', async () => {
  void loadPage('/usage', failed, browser(true));
  await expect.poll(() => reloads).toBe(1);
  expect(await textOf(loadPage('/usage', failed, browser(true)))).toMatch(/^The server did not deliver this page\./);
  expect(reloads).toBe(1);
  expect(await loadPage('/usage', async () => 'module', browser(true))).toBe('module');
  void loadPage('/usage', failed, browser(true));
  await expect.poll(() => reloads).toBe(2);
});

it('says offline that the connection is missing, and reloads nothing', async () => {
  expect(await textOf(loadPage('/usage', failed, browser(false)))).toBe('You are offline. Check your internet connection, then try again.');
  expect(reloads).toBe(0);
});
