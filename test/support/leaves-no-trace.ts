/**
 * Run before every test file that shares its process with others: a file that leaves a variable of the environment changed,
 * fake timers, replaced global functions, another working directory or processes behind fails.
 */
import { afterAll, expect, vi } from 'vitest';
import { leftProcesses } from './left-processes.js';

interface Shared {
  readonly environment: NodeJS.ProcessEnv;
  readonly directory: string;
  readonly fakeTimers: boolean;
  readonly functions: readonly unknown[];
}

// The runner itself changes NODE_ENV and what begins with VITEST between files; libvips sets VIPSHOME when sharp first reads an image.
const OWN = /^(VITEST|NODE_ENV$|VIPSHOME$)/;

function shared(): Shared {
  const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !OWN.test(name)));
  const functions = [console.log, console.warn, console.error, globalThis.fetch, globalThis.setTimeout, Date.now, Math.random];
  return { environment, directory: process.cwd(), fakeTimers: vi.isFakeTimers(), functions };
}

/** A process whose parent was killed takes a while to notice. */
const ENDING_MS = 30_000;

const before = shared();
const leftBefore = new Set(leftProcesses().map(({ pid, startedAt }) => `${pid} ${startedAt}`));
const leftByThisFile = () => leftProcesses().filter(({ pid, startedAt }) => !leftBefore.has(`${pid} ${startedAt}`));

afterAll(async () => {
  expect(shared()).toEqual(before);
  const end = performance.now() + ENDING_MS;
  while (leftByThisFile().length > 0 && performance.now() < end) await new Promise((resolve) => setTimeout(resolve, 100));
  expect(leftByThisFile(), 'processes that this file left behind').toEqual([]);
}, 2 * ENDING_MS);
