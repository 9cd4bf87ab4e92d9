import { expect, it } from 'vitest';
import { PAGES } from '../src/pages/pages.js';
import { PATHS } from '../src/routing/paths.js';

/// <reference types="vite/client" />

it('every page has a distinct path that the coordinator serves', () => {
  const served: readonly string[] = Object.values(PATHS);
  const paths = PAGES.map(({ path }) => path);
  expect(paths.filter((path) => !served.includes(path))).toEqual([]);
  expect(served.filter((path) => !paths.includes(path))).toEqual([]);
  expect(new Set(paths).size).toBe(paths.length);
  expect(paths).toContain('/');
});

it('every navigation label is unique in its section', () => {
  const named = PAGES.flatMap(({ nav }) => (nav === undefined ? [] : [`${nav.section}: ${nav.label}`]));
  expect(new Set(named).size).toBe(named.length);
});
