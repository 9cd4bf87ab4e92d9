/** Turbo restores a bundle from its cache only with every program of the bundle. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const readJson = (path: string): unknown => JSON.parse(readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8'));

it.each(['coordinator', 'provider'])('the cached outputs of the %s are its programs and chunks', (app) => {
  const { scripts } = readJson(`apps/${app}/package.json`) as { scripts: { bundle: string } };
  const { tasks } = readJson(`apps/${app}/turbo.json`) as { tasks: { bundle: { outputs: string[] } } };
  const programs = [...scripts.bundle.matchAll(/ src\/(\S+)\.ts/g)].map(([, name]) => `dist/${name}.js*`);
  expect(programs).not.toEqual([]);
  expect([...tasks.bundle.outputs].sort()).toEqual([...programs, 'dist/chunks/**'].sort());
});
