/**
 * Starts one browser per test process, with playwright-core. Without a browser, its tests are skipped with a visible notice.
 */
import { existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';
import { describe } from 'vitest';

/** Paths on Debian and on public CI machines. The headless shell comes first: full browsers use twice the processor time. */
const DEFAULT_PATHS = ['/usr/lib/chromium/chromium-headless-shell', '/usr/bin/chromium', '/usr/bin/google-chrome'];
const PROGRAM = process.env.CHROMIUM_PATH ?? DEFAULT_PATHS.find((path) => existsSync(path)) ?? '/usr/bin/chromium';
/** Minimum free space of /dev/shm. Containers often have 64 MB; the browser then uses files, at more processor time. */
const MIN_SHARED_MEMORY_BYTES = 1024 ** 3;
const ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  ...(hasSharedMemory() ? [] : ['--disable-dev-shm-usage']),
];
/** Time limit of Chromium's start on a busy machine. */
const START_MS = 100_000;

export const hasBrowser = existsSync(PROGRAM);
if (!hasBrowser) {
  // Written to stderr directly, because the test runner hides logs of tests.
  process.stderr.write(
    `\n!!! NO BROWSER at ${PROGRAM}: the tests of the web console DO NOT RUN. Install chromium-headless-shell, or set CHROMIUM_PATH.\n\n`,
  );
}

/** `describe` for tests in a browser. */
export const describeInBrowser = describe.skipIf(!hasBrowser);

let started: Promise<Browser> | undefined;

/** The browser of this process, started at the first call. Exits with the process. */
export function sharedBrowser(): Promise<Browser> {
  started ??= start();
  return started;
}

/** Whether the memory that Chromium's processes share (shm_overview(7)) has room. */
function hasSharedMemory(): boolean {
  if (!existsSync('/dev/shm')) return false;
  const { bavail, bsize } = statfsSync('/dev/shm');
  return bavail * bsize >= MIN_SHARED_MEMORY_BYTES;
}

async function start(): Promise<Browser> {
  // Profile and sockets go into this folder, so that checks for leftover files find them.
  const directory = mkdtempSync(join(tmpdir(), 'console-browser-'));
  const before = process.env.TMPDIR;
  process.env.TMPDIR = directory;
  try {
    return await launch(directory);
  } finally {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  }
}

async function launch(directory: string): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath: PROGRAM,
    args: ARGUMENTS,
    timeout: START_MS,
    handleSIGTERM: false,
    handleSIGINT: false,
    handleSIGHUP: false,
  });
  // The test runner ends processes with SIGTERM, but Playwright closes the browser only at an ordinary exit.
  process.once('SIGTERM', () => process.exit(143));
  process.once('exit', () => rmSync(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 20 }));
  return browser;
}
