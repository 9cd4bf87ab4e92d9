/**
 * Starts TypeScript programs as processes of tests, bundled once into one file, which starts faster. Waits never block the event loop,
 * which would defeat test timeouts.
 */
import { execFile } from 'node:child_process';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { BUNDLE } from '../../scripts/bundle/options.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const built = new Map<string, Promise<string>>();

/** Path of the bundle of a TypeScript program, given by its repository path. Rejects on a compile error. */
export function program(source: string): Promise<string> {
  let path = built.get(source);
  if (path === undefined) {
    path = bundle(source);
    built.set(source, path);
  }
  return path;
}

/** Runs a program to its end. Rejects with its output on failure. */
export async function runProgram(source: string, args: readonly string[]): Promise<void> {
  await promisify(execFile)(process.execPath, [await program(source), ...args], { cwd: ROOT, maxBuffer: 64 * 1024 * 1024 });
}

async function bundle(source: string): Promise<string> {
  // Beside the source, so that module resolution is identical.
  const path = join(ROOT, source.replace(/\.ts$/, '.bundle.js'));
  // Written beside and renamed: another process may bundle or start the same program now.
  const fresh = `${path}.${process.pid}`;
  await build({ ...BUNDLE, entryPoints: [join(ROOT, source)], outfile: fresh, sourcemap: 'inline' });
  await rename(fresh, path);
  return path;
}
