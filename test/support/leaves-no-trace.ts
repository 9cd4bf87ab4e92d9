/**
 * Run before every test file that shares its process with others: a file that leaves a variable of the environment changed,
 * fake timers, replaced global functions or another working directory behind fails.
 */
import { afterAll, expect, vi } from 'vitest';

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

const before = shared();
afterAll(() => expect(shared()).toEqual(before));
