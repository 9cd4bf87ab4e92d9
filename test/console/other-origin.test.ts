/** The `openai` SDK on a page of another origin, in a real browser: CORS permissions, and CORS disabled by the operator. */
import { createServer, type Server } from 'node:http';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import type OpenAI from 'openai';
import type { ConsoleMessage, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { type Harness, MODEL, startHarness } from '../../apps/coordinator/test/support/harness.js';
import { describeInBrowser, sharedBrowser } from '../support/console/browser.js';
import { addressOf, listenLocally } from '../support/local-server.js';

interface Client {
  readonly baseURL: string;
  readonly apiKey: string;
  readonly model: string;
}

interface Outcome {
  /** Text of the response; null if the call failed. */
  readonly text: string | null;
  readonly receipt: string | null;
  readonly trustLevel: string | null;
  readonly error: string | null;
}

describeInBrowser('the openai SDK on a page of another origin', () => {
  let pages: Server;
  let page: Page;
  let open: Harness;
  let closed: Harness;

  beforeAll(async () => {
    const bundle = await build({
      stdin: { contents: "export { default } from 'openai';", resolveDir: fileURLToPath(new URL('..', import.meta.url)), loader: 'ts' },
      bundle: true,
      write: false,
      format: 'iife',
      globalName: 'sdk',
      platform: 'browser',
      logLevel: 'silent',
    });
    const script = bundle.outputFiles[0]?.text ?? '';
    pages = createServer((request, response) => {
      const isScript = request.url === '/sdk.js';
      response.setHeader('content-type', isScript ? 'text/javascript; charset=utf-8' : 'text/html; charset=utf-8');
      response.end(
        isScript ? script : '<!doctype html><link rel="icon" href="data:,"><script src="/sdk.js"></script><h1>Another site</h1>',
      );
    });
    await listenLocally(pages);
    open = await startHarness();
    closed = await startHarness({ config: { cors: false } });
    for (const harness of [open, closed]) await harness.provider();
    const context = await (await sharedBrowser()).newContext();
    context.setDefaultTimeout(90_000);
    page = await context.newPage();
    // Another port is another origin.
    await page.goto(`${addressOf(pages)}/`);
  });
  afterAll(async () => {
    await page?.context().close();
    await open?.close();
    await closed?.close();
    await new Promise((resolve) => (pages === undefined ? resolve(null) : pages.close(resolve)));
  });

  const clientOf = ({ url, apiKey }: Harness): Client => ({ baseURL: `${url}/v1`, apiKey, model: MODEL });

  it('gets plain and streamed responses, and reads their receipts', async () => {
    for (const stream of [false, true]) {
      const outcome = await page.evaluate(ask, { ...clientOf(open), stream });
      expect(outcome).toMatchObject({ error: null, trustLevel: 'self_signed' });
      expect(outcome.text?.length).toBeGreaterThan(0);
      // A stream's receipt arrives in the signature event, after the text.
      if (!stream) expect(JSON.parse(atob(outcome.receipt ?? ''))).toMatchObject({ model: MODEL });
    }
  });

  it('reads the errors of the API', async () => {
    const outcome = await page.evaluate(ask, { ...clientOf(open), apiKey: 'service-wrong', stream: false });
    expect(outcome.error).toMatch(/^401 /);
  });

  it('gets nothing if CORS is off', async () => {
    const jobs = closed.jobLines().length;
    for (const stream of [false, true]) {
      const outcome = await page.evaluate(ask, { ...clientOf(closed), stream });
      expect(outcome).toMatchObject({ text: null, error: 'Connection error.' });
    }
    expect(closed.jobLines().length).toBe(jobs);
    expect((await closed.chat()).status).toBe(200);
  });

  it('does not let the page read the console', async () => {
    const seen: string[] = [];
    const note = (message: ConsoleMessage): void => void seen.push(message.text());
    page.on('console', note);
    onTestFinished(() => void page.off('console', note));
    const reached = await page.evaluate(async (url) => {
      const answer = await fetch(url, { credentials: 'include' }).catch(() => null);
      return answer !== null;
    }, `${open.url}/console/v1/keys`);
    expect(reached).toBe(false);
    await expect.poll(() => seen.some((text) => text.includes('blocked by CORS policy'))).toBe(true);
  });
});

/** Runs in the page. */
async function ask({ model, stream, ...client }: Client & { readonly stream: boolean }): Promise<Outcome> {
  const { default: Sdk } = (globalThis as unknown as { sdk: { default: typeof OpenAI } }).sdk;
  const openai = new Sdk({ ...client, dangerouslyAllowBrowser: true, maxRetries: 0 });
  const request = { model, messages: [{ role: 'user' as const, content: 'hi' }] };
  try {
    if (stream) {
      const { data, response } = await openai.chat.completions.create({ ...request, stream: true }).withResponse();
      let text = '';
      for await (const chunk of data) text += chunk.choices[0]?.delta.content ?? '';
      return {
        text,
        receipt: response.headers.get('x-inference-receipt'),
        trustLevel: response.headers.get('x-provider-trust-level'),
        error: null,
      };
    }
    const { data, response } = await openai.chat.completions.create(request).withResponse();
    return {
      text: data.choices[0]?.message.content ?? null,
      receipt: response.headers.get('x-inference-receipt'),
      trustLevel: response.headers.get('x-provider-trust-level'),
      error: null,
    };
  } catch (error) {
    return { text: null, receipt: null, trustLevel: null, error: (error as Error).message };
  }
}
