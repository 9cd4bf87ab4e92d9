/**
 * Bundles the programs of one workspace over what the compiler wrote for them: a file each instead of a thousand small
 * modules, which are most of the time that a program takes to start. Arguments are the entry sources: `src/a/b.ts` becomes
 * `dist/a/b.js`. Runs in the workspace's folder, after the compiler.
 *
 * Programs may start while this runs (`npm start` builds, too): a file that is as it should be is left alone, another is replaced at
 * once, and every piece is there before a program that needs it.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { build } from 'esbuild';
import { BUNDLE } from './options.mjs';

const CHUNKS = resolve('dist/chunks');

const { outputFiles } = await build({
  ...BUNDLE,
  entryPoints: process.argv.slice(2),
  outbase: 'src',
  outdir: 'dist',
  // What is imported on demand is a file of its own, and loaded on demand.
  splitting: true,
  chunkNames: 'chunks/[name]-[hash]',
  sourcemap: 'linked',
  sourcesContent: false,
  legalComments: 'linked',
  write: false,
});
const isChunk = ({ path }) => dirname(path) === CHUNKS;
for (const file of outputFiles.filter(isChunk)) replace(file);
for (const file of outputFiles.filter((file) => !isChunk(file))) replace(file);
const needed = new Set(outputFiles.map(({ path }) => path));
for (const name of existsSync(CHUNKS) ? readdirSync(CHUNKS) : []) {
  if (!needed.has(join(CHUNKS, name))) rmSync(join(CHUNKS, name), { recursive: true, force: true });
}

function replace({ path, contents }) {
  if (existsSync(path) && readFileSync(path).equals(contents)) return;
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.new`, contents);
  renameSync(`${path}.new`, path);
}
