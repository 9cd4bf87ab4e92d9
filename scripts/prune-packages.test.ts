/** The install steps that delete unused files of packages: what they delete, and what a system retains. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, expect, it } from 'vitest';
import { pruneEngines } from '../apps/provider/install/prune-engines.mjs';
import { temporaryDirectory } from '../test/support/temporary-directory.js';

let root: string;
beforeEach(() => {
  root = temporaryDirectory('prune-packages');
});

function write(files: Readonly<Record<string, object | null>>): void {
  for (const [name, manifest] of Object.entries(files)) {
    const path = join(root, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, manifest === null ? '' : JSON.stringify(manifest));
  }
}

const left = (): string[] =>
  readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== 'package.json')
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
    .sort();

const ENGINES = ['darwin/arm64', 'linux/arm64', 'linux/x64', 'win32/x64'].map(
  (system) => `onnxruntime-node/bin/napi-v6/${system}/ort.node`,
);

it.each([
  ['darwin', 'arm64', ENGINES[0]],
  ['linux', 'arm64', ENGINES[1]],
  ['linux', 'x64', ENGINES[2]],
])('leaves %s-%s its own engines', (os, cpu, onnxruntime) => {
  const llama = ['linux-arm64', 'linux-x64', 'mac-arm64-metal'].map((name) => `@node-llama-cpp/${name}/bins/llama-addon.node`);
  const all = [...ENGINES, ...llama, 'node-llama-cpp/llama/gitRelease.bundle', 'node-llama-cpp/dist/index.js'];
  write(Object.fromEntries(all.map((name) => [name, null])));
  pruneEngines(root, os, cpu);
  // npm installs other systems' packages of llama.cpp on x64 only.
  const libraries = cpu === 'x64' ? llama.slice(1) : llama;
  expect(left()).toEqual([...libraries, 'node-llama-cpp/dist/index.js', onnxruntime].sort());
});

it('deletes source maps and TypeScript sources, except in packages whose manifests name sources', () => {
  write({
    'node_modules/plain/package.json': { types: 'index.d.ts', exports: { '@plain/source': './src/index.ts', default: './index.js' } },
    'node_modules/plain/index.js': null,
    'node_modules/plain/index.js.map': null,
    'node_modules/plain/index.d.ts': null,
    'node_modules/plain/index.d.ts.map': null,
    'node_modules/plain/src/index.ts': null,
    'node_modules/plain/node_modules/@scope/nested/lib/a.mts': null,
    'node_modules/sources/package.json': { exports: { '.': { types: './src/index.ts', default: './index.mjs' } } },
    'node_modules/sources/src/index.ts': null,
    'node_modules/sources/index.mjs.map': null,
    'packages/one/src/index.ts': null,
    'packages/one/node_modules/inner/index.cjs.map': null,
    'packages/one/node_modules/inner/package.json': {},
  });
  execFileSync(process.execPath, [fileURLToPath(new URL('prune-packages.mjs', import.meta.url)), root]);
  expect(left()).toEqual([
    'node_modules/plain/index.d.ts',
    'node_modules/plain/index.js',
    'node_modules/sources/src/index.ts',
    'packages/one/src/index.ts',
  ]);
});
