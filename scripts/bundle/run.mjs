/**
 * Bundles the programs of one workspace over what the compiler wrote for them: a file each instead of a thousand small
 * modules, which are most of the time that a program takes to start. Arguments are the entry sources: `src/a/b.ts` becomes
 * `dist/a/b.js`. Runs in the workspace's folder, after the compiler.
 */
import { rmSync } from 'node:fs';
import { build } from 'esbuild';
import { BUNDLE } from './options.mjs';

rmSync('dist/chunks', { recursive: true, force: true });
await build({
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
});
