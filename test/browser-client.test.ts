/** The client library in a real browser, on a page of another origin: without Node modules, in end-to-end mode through a whole network. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import type * as Client from '@inference/client';
import { build } from 'esbuild';
import type OpenAI from 'openai';
import type { Page, Request } from 'playwright-core';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { type Harness, startHarness, until } from '../apps/coordinator/test/support/harness.js';
import { describeInBrowser, sharedBrowser } from './support/console/browser.js';
import { LightAgent } from './support/light/agent.js';
import { promptOf, textOf } from './support/light/script.js';

const MODEL = 'light/browser';
const SHORT = { words: 20 };
/** Script of a response that the page aborts before its end. */
const LONG = { words: 100_000, everyMs: 5 };

/** Result of one request, as the page reports it. */
interface Outcome {
  readonly text: string;
  readonly state: string | null;
  readonly error: string | null;
}

interface Asked {
  readonly baseURL: string;
  readonly apiKey: string;
  readonly model: string;
  readonly prompt: string;
  readonly stream: boolean;
  /** Aborts after the first words. */
  readonly isAborted: boolean;
}

const BUNDLE = "export { default as OpenAI } from 'openai'; export * from '@inference/client';";

describeInBrowser('the client on a page', () => {
  let pages: Server;
  let page: Page;
  let harness: Harness;
  let agent: LightAgent;

  beforeAll(async () => {
    // The build fails at any import of a Node module.
    const bundle = await build({
      stdin: { contents: BUNDLE, resolveDir: fileURLToPath(new URL('.', import.meta.url)), loader: 'ts' },
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
      response.end(isScript ? script : '<!doctype html><link rel="icon" href="data:,"><script src="/sdk.js"></script><h1>A site</h1>');
    });
    await new Promise<void>((resolve) => pages.listen(0, '127.0.0.1', resolve));
    harness = await startHarness();
    agent = await LightAgent.join({ url: harness.url, models: [MODEL] });
    const context = await (await sharedBrowser()).newContext();
    context.setDefaultTimeout(90_000);
    page = await context.newPage();
    // Another port is another origin.
    await page.goto(`http://127.0.0.1:${(pages.address() as AddressInfo).port}/`);
  });
  afterAll(async () => {
    await page?.context().close();
    agent?.leave();
    await harness?.close();
    pages?.close();
  });

  function ask(options: Partial<Asked>): Promise<Outcome> {
    const asked: Asked = {
      baseURL: `${harness.url}/v1`,
      apiKey: harness.apiKey,
      model: MODEL,
      prompt: promptOf(SHORT),
      stream: false,
      isAborted: false,
      ...options,
    };
    return page.evaluate(async ({ baseURL, apiKey, model, prompt, stream, isAborted }) => {
      const { sdk } = globalThis as unknown as { sdk: typeof Client & { OpenAI: typeof OpenAI } };
      const verified = sdk.createVerifiedFetch({ baseURL, policy: { allowSimulated: true } });
      let answer: Response | null = null;
      const fetch: typeof globalThis.fetch = async (input, init) => {
        answer = await verified(input as string, init);
        return answer;
      };
      const client = new sdk.OpenAI({ baseURL, apiKey, fetch, maxRetries: 0, dangerouslyAllowBrowser: true });
      const leaving = new AbortController();
      const request = { model, messages: [{ role: 'user' as const, content: prompt }] };
      let text = '';
      let error: string | null = null;
      try {
        if (stream) {
          for await (const { choices } of await client.chat.completions.create({ ...request, stream }, { signal: leaving.signal })) {
            text += choices[0]?.delta.content ?? '';
            if (isAborted && text !== '') leaving.abort();
          }
        } else text = (await client.chat.completions.create(request)).choices[0]?.message.content ?? '';
      } catch (reason) {
        error = String(reason);
      }
      return { text, state: answer === null ? null : (sdk.verdictOf(answer)?.state ?? null), error };
    }, asked);
  }

  it.each([false, true])('gets a verified response (stream: %s)', async (stream) => {
    expect(await ask({ stream })).toEqual({ text: textOf(SHORT), state: 'verified', error: null });
  });

  it('aborts a stream, which ends the job and is not taken as complete', async () => {
    const { cancels } = agent.counts;
    const { text, state } = await ask({ stream: true, isAborted: true, prompt: promptOf(LONG) });
    expect(textOf({ words: 1000 }).startsWith(text)).toBe(true);
    expect(text).not.toBe('');
    expect(state).toBe('refused');
    await until(() => agent.counts.cancels > cancels && agent.runningJobs === 0);
    await until(async () => (await harness.money()).reserved === 0);
  });

  it('sees the error of the coordinator', async () => {
    const { text, state, error } = await ask({ apiKey: 'wrong' });
    expect({ text, state }).toEqual({ text: '', state: 'refused' });
    expect(error).toContain('401');
  });

  it('sends nothing in clear', async () => {
    const posted: string[] = [];
    const note = (request: Request): void => {
      if (request.method() === 'POST') posted.push(`${new URL(request.url()).pathname} ${request.postDataBuffer()?.toString('latin1')}`);
    };
    page.on('request', note);
    onTestFinished(() => void page.off('request', note));
    const canary = 'read by the answering machine alone';
    expect(await ask({ prompt: JSON.stringify({ ...SHORT, canary }) })).toMatchObject({ state: 'verified' });
    expect(posted).toHaveLength(1);
    expect(posted[0]).toMatch(/^\/v1\/e2e\/requests IE2E/);
    expect(posted[0]).not.toContain(canary);
  });
});
