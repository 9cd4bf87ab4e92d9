/**
 * Setup for test files that share a process. A file fails if it leaves the environment, the working directory, fake timers or
 * common global functions changed, or leaves processes.
 */
import { afterAll, expect, vi } from 'vitest';
import { leftProcesses } from './left-processes.js';
import { removeTemporaryDirectories } from './temporary-directory.js';

interface Shared {
  readonly environment: NodeJS.ProcessEnv;
  readonly directory: string;
  readonly fakeTimers: boolean;
  readonly functions: readonly unknown[];
}

// The runner changes NODE_ENV and VITEST… between files; libvips sets VIPSHOME when sharp first reads an image.
const RUNNER_VARIABLES = /^(VITEST|NODE_ENV$|VIPSHOME$)/;

function shared(): Shared {
  const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !RUNNER_VARIABLES.test(name)));
  const functions = [console.log, console.warn, console.error, globalThis.fetch, globalThis.setTimeout, Date.now, Math.random];
  return { environment, directory: process.cwd(), fakeTimers: vi.isFakeTimers(), functions };
}

/** An orphaned process takes a while to notice its parent's death. */
const ENDING_MS = 60_000;

const before = shared();
const leftBefore = new Set(leftProcesses().map(({ pid, startedAt }) => `${pid} ${startedAt}`));
const leftByThisFile = () => leftProcesses().filter(({ pid, startedAt }) => !leftBefore.has(`${pid} ${startedAt}`));

afterAll(async () => {
  expect(shared()).toEqual(before);
  const end = performance.now() + ENDING_MS;
  while (leftByThisFile().length > 0 && performance.now() < end) await new Promise((resolve) => setTimeout(resolve, 100));
  removeTemporaryDirectories();
  expect(leftByThisFile(), 'processes that this file left behind').toEqual([]);
}, 2 * ENDING_MS);
