/** Checks a page against axe's rules for WCAG 2.2 A and AA and best practices, in the current theme and size. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';
import type { CDPSession, Page } from 'playwright-core';
import { expect } from 'vitest';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Debugger session per page. Not detached, because detaching would remove the page's virtual authenticators. */
const sessions = new WeakMap<Page, Promise<CDPSession>>();

function debuggerOf(page: Page): Promise<CDPSession> {
  const session = sessions.get(page) ?? page.context().newCDPSession(page);
  sessions.set(page, session);
  return session;
}

/** Fails the test with a list of findings: rule, element, problem. */
export async function expectAccessible(page: Page): Promise<void> {
  expect(await findingsOf(page)).toEqual([]);
}

export async function findingsOf(page: Page): Promise<string[]> {
  // Once per document, through the debugger, because the page's Content-Security-Policy blocks injected scripts.
  // `page.evaluate` passes text to `eval`, which takes a third more processor time for these 650 kB.
  const session = await debuggerOf(page);
  if (!(await page.evaluate(() => 'axe' in globalThis))) {
    const { exceptionDetails } = await session.send('Runtime.evaluate', { expression: AXE });
    expect(exceptionDetails).toBeUndefined();
  }
  const results = await page.evaluate(() => {
    const { axe } = globalThis as unknown as { axe: { run(options: object): Promise<AxeResults> } };
    return axe.run({ resultTypes: ['violations'] });
  });
  return results.violations.flatMap(({ id, nodes }) =>
    nodes.map((node) => `${id}: ${node.target.join(' ')} ${node.failureSummary?.replaceAll('\n', ' ') ?? ''}`),
  );
}
