/** The outputs of `bundle` in each turbo.json name every program of the workspace, so that Turbo's cache restores all of them. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const readJson = (path: string): unknown => JSON.parse(readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8'));

const BUNDLED = [
  'apps/coordinator',
  'apps/provider',
  'packages/client',
  'packages/device-simulation',
  'packages/enclave',
  'packages/verifier',
];

it.each(BUNDLED)('the cached outputs of %s are its programs and chunks', (workspace) => {
  const { scripts } = readJson(`${workspace}/package.json`) as { scripts: { bundle: string } };
  const { tasks } = readJson(`${workspace}/turbo.json`) as { tasks: { bundle: { outputs: string[] } } };
  const programs = [...scripts.bundle.matchAll(/ src\/(\S+)\.ts/g)].map(([, name]) => `dist/${name}.js*`);
  expect(programs).not.toEqual([]);
  expect([...tasks.bundle.outputs].sort()).toEqual([...programs, 'dist/chunks/**'].sort());
});
