/** `openPage`: opens a console page in a browser. Console errors, CSP violations and requests to other origins fail the test. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { BrowserContext, Page } from 'playwright-core';
import { expect, onTestFinished } from 'vitest';
import { failuresOfSharedNetwork, sharedNetwork } from '../shared-network.js';
import { sharedBrowser } from './browser.js';
import type { Person } from './people.js';

export interface OpenPageOptions {
  /** A person from `newPerson`; absent: signed out. */
  readonly signedInAs?: Person;
  readonly theme?: 'light' | 'dark';
  /** `phone` is 390 pixels wide, `wide` 1440. */
  readonly width?: 'phone' | 'wide';
  /** Origin of the console; default: the shared network. */
  readonly baseUrl?: string;
  /** Expected messages on the browser's console, such as a refused request. */
  readonly expectedErrors?: readonly RegExp[];
  /** Default: true. */
  readonly javaScript?: boolean;
  /** Called before the page is opened. */
  readonly prepare?: (context: BrowserContext) => Promise<unknown>;
}

/** Combinations for checks of pages: each theme and each width once. */
export const LOOKS = [
  { theme: 'light', width: 'wide' },
  { theme: 'dark', width: 'phone' },
] as const;

const SIZES = { phone: { width: 390, height: 844 }, wide: { width: 1440, height: 900 } } as const;
/** Time limit of a step on a very slow machine. A working page responds immediately. */
const STEP_MS = 90_000;

/** Problems observed on a page. */
const problems = new WeakMap<Page, string[]>();

/** Opens a console page and waits for its heading. Closes when the test ends, and fails the test on any problem. */
export async function openPage(path: string, options: OpenPageOptions = {}): Promise<Page> {
  const { theme = 'light', width = 'wide', signedInAs, prepare } = options;
  const baseUrl = options.baseUrl ?? (await sharedNetwork()).baseUrl;
  const browser = await sharedBrowser();
  const context = await browser.newContext({
    baseURL: baseUrl,
    viewport: SIZES[width],
    colorScheme: theme,
    reducedMotion: 'reduce',
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
    serviceWorkers: 'block',
    javaScriptEnabled: options.javaScript ?? true,
    ...(width === 'phone' ? { hasTouch: true, isMobile: true, deviceScaleFactor: 2 } : {}),
  });
  context.setDefaultTimeout(STEP_MS);
  await context.addInitScript(measureLayoutShift);
  if (signedInAs !== undefined) await context.addCookies(signedInAs.cookies.map((cookie) => cookieOf(cookie, baseUrl)));
  await prepare?.(context);
  const page = await context.newPage();
  const seen = watch(page, baseUrl);
  onTestFinished(async () => {
    await context.close();
    const unexpected = seen.filter((line) => !options.expectedErrors?.some((pattern) => pattern.test(line)));
    expect(unexpected, `what went wrong on ${path}`).toEqual([]);
    if (options.baseUrl === undefined) expect(failuresOfSharedNetwork()).toEqual([]);
  });
  await page.goto(path);
  await page.locator('main h1').first().waitFor();
  return page;
}

/** Problems observed on a page so far. */
export function problemsOf(page: Page): readonly string[] {
  return problems.get(page) ?? [];
}

/** Writes a full-page screenshot into the folder `SCREENSHOTS`; no-op without that variable. */
export async function screenshot(page: Page, name: string): Promise<void> {
  const directory = process.env.SCREENSHOTS;
  if (directory === undefined || directory === '') return;
  mkdirSync(directory, { recursive: true });
  await page.screenshot({ path: join(directory, `${name}.png`), fullPage: true, animations: 'disabled' });
}

/** Maximum Cumulative Layout Shift. web.dev rates up to 0.1 as good. */
const MAX_SHIFT = 0.02;

/** Fails on layout shifts without user input, naming the moved elements. */
export async function expectStill(page: Page): Promise<void> {
  const shifts = await shiftsOf(page);
  const total = shifts.reduce((sum, { value }) => sum + value, 0);
  expect(total, shifts.map(({ value, what }) => `${value.toFixed(4)} ${what}`).join('\n')).toBeLessThan(MAX_SHIFT);
}

/** Layout shifts without user input over the page's life, as the browser reports them. */
export function shiftsOf(page: Page): Promise<readonly Shift[]> {
  return page.evaluate(() => (globalThis as unknown as { layoutShifts: Shift[] }).layoutShifts);
}

interface Shift {
  readonly value: number;
  /** Moved elements. */
  readonly what: string;
}

/** Function that runs inside the page. */
function measureLayoutShift(): void {
  const shifts: Shift[] = [];
  (globalThis as unknown as { layoutShifts: Shift[] }).layoutShifts = shifts;
  interface Entry extends PerformanceEntry {
    readonly value: number;
    readonly hadRecentInput: boolean;
    readonly sources: readonly { readonly node: Element | null; readonly previousRect: DOMRect; readonly currentRect: DOMRect }[];
  }
  const rect = ({ x, y, width, height }: DOMRect) => `${x},${y} ${width}x${height}`;
  new PerformanceObserver((list) => {
    for (const { value, hadRecentInput, sources } of list.getEntries() as Entry[]) {
      if (hadRecentInput) continue;
      const what = sources.map(
        ({ node, previousRect, currentRect }) => `${node?.nodeName}.${node?.className} ${rect(previousRect)} to ${rect(currentRect)}`,
      );
      shifts.push({ value, what: what.join('; ') });
    }
  }).observe({ type: 'layout-shift', buffered: true });
}

function watch(page: Page, baseUrl: string): string[] {
  const seen: string[] = [];
  problems.set(page, seen);
  // Browsers report CSP violations as console errors.
  page.on('console', (message) => {
    if (message.type() === 'error') seen.push(`console: ${message.text()} (${message.location().url})`);
  });
  page.on('pageerror', (error) => seen.push(`script: ${error.message}`));
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(`${baseUrl}/`) && !/^(?:data|blob):/.test(url)) seen.push(`request to somebody else: ${url}`);
  });
  return seen;
}

function cookieOf(cookie: string, url: string): { name: string; value: string; url: string } {
  const at = cookie.indexOf('=');
  return { name: cookie.slice(0, at), value: cookie.slice(at + 1), url };
}
