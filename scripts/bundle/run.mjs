/**
 * Bundles a workspace's programs, because loading a thousand modules dominates their start time. Arguments: entry sources;
 * `src/a/b.ts` becomes `dist/a/b.js`. Runs in the workspace's folder; in a full build, after the compiler, whose output is replaced.
 *
 * Programs may be started during a build, so files are replaced atomically, and chunks are written before programs.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { build } from 'esbuild';
import { BUNDLE } from './options.mjs';

const CHUNKS = resolve('dist/chunks');

/** Files of one program. Built together, programs would load modules that only another one needs. */
async function bundled(source) {
  const { outputFiles } = await build({
    ...BUNDLE,
    entryPoints: [source],
    outbase: 'src',
    outdir: 'dist',
    // Dynamic imports stay separate files, loaded on demand.
    splitting: true,
    chunkNames: 'chunks/[name]-[hash]',
    sourcemap: 'linked',
    sourcesContent: false,
    legalComments: 'linked',
    write: false,
  });
  return outputFiles;
}

const outputFiles = [];
for (const source of process.argv.slice(2)) outputFiles.push(...(await bundled(source)));
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
