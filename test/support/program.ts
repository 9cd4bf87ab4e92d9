/**
 * Runs TypeScript programs as child processes of tests. Each is bundled into one file, which starts faster than many modules.
 *
 * A bundle is reused until a source changes. Bundling is asynchronous, because a blocked event loop would disable test timeouts.
 */
import { execFile } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { rename, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { BUNDLE } from '../../scripts/bundle/options.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Files, besides the sources, whose change makes a bundle outdated. */
const COMMON_INPUTS = [
  'scripts/bundle/node-llama-cpp.mjs',
  'scripts/bundle/options.mjs',
  'scripts/bundle/workspace-sources.mjs',
  'package-lock.json',
  'tsconfig.base.json',
];
/** Key: repository path of the source. */
const bundleBySource = new Map<string, Promise<string>>();

/** Path of the bundle of a TypeScript program, given by its repository path. Rejects on a compile error. */
export function program(source: string): Promise<string> {
  let path = bundleBySource.get(source);
  if (path === undefined) {
    path = bundle(source);
    bundleBySource.set(source, path);
  }
  return path;
}

/** Runs a program to its end. Rejects with its output on failure. */
export async function runProgram(source: string, args: readonly string[]): Promise<void> {
  await promisify(execFile)(process.execPath, [await program(source), ...args], { cwd: ROOT, maxBuffer: 64 * 1024 * 1024 });
}

async function bundle(source: string): Promise<string> {
  // In the folder of the source, so that module resolution is identical.
  const path = join(ROOT, source.replace(/\.ts$/, '.bundle.js'));
  if (isCurrent(path)) return path;
  const startedAt = new Date();
  // Written to another name and renamed, because another process may bundle or start the same program.
  const fresh = `${path}.${process.pid}`;
  const freshList = `${inputListOf(path)}.${process.pid}`;
  const { metafile } = await build({ ...BUNDLE, entryPoints: [join(ROOT, source)], outfile: fresh, absWorkingDir: ROOT, metafile: true });
  await writeFile(freshList, JSON.stringify([...COMMON_INPUTS, ...Object.keys(metafile.inputs)]));
  await utimes(fresh, startedAt, startedAt);
  await rename(freshList, inputListOf(path));
  await rename(fresh, path);
  return path;
}

/** Whether a bundle of another test process, or of an earlier run, is newer than its sources. */
function isCurrent(path: string): boolean {
  try {
    const bundledAt = statSync(path).mtimeMs;
    const inputs = JSON.parse(readFileSync(inputListOf(path), 'utf8')) as string[];
    return inputs.every((input) => statSync(join(ROOT, input)).mtimeMs < bundledAt);
  } catch {
    // Not bundled yet, or a source was removed.
    return false;
  }
}

/** File that names the sources of a bundle. */
function inputListOf(path: string): string {
  return path.replace(/\.js$/, '.json');
}
