/** Turbo restores a bundle from its cache only with every program of the bundle. */
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
