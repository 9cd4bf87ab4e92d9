/** The playground in a browser: streaming, stopping, versions, comparison, local verification, and detection of altered responses. */
import { readFileSync } from 'node:fs';
import type { Page, Request, Route } from 'playwright-core';
import sharp from 'sharp';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { expectAccessible } from '../support/console/accessible.js';
import { describeInBrowser } from '../support/console/browser.js';
import { LOOKS, type OpenPageOptions, openPage, screenshot } from '../support/console/open-page.js';
import { newPerson, type Person } from '../support/console/people.js';
import { type DemoNetwork, startDemoNetwork } from '../support/demo-network.js';
import { LightAgent } from '../support/light/agent.js';
import { promptOf } from '../support/light/script.js';

const SLOW = 'slow-model';
const BREAKING = 'breaking-model';
const SEEING = 'seeing-model';
const MARKDOWN = `# Plan

1. *Read* the \`signature\`
2. See [the site](https://example.com/a) or [this](javascript:alert(1))

| Key | Size |
|-----|-----:|
| P-256 | 64 |

\`\`\`python
print("hello")
\`\`\`

<img src=x onerror=alert(1)> ![chart](https://example.com/chart.png)`;
/** Longer than any test runs. */
const LONG = { words: 50_000, everyMs: 20 };

/** Images of a chat request, in order. */
function imagesIn(request: Request): Buffer[] {
  const { messages } = request.postDataJSON() as { messages: readonly { content: unknown }[] };
  const parts = messages.flatMap(({ content }) => (Array.isArray(content) ? (content as readonly { image_url?: { url: string } }[]) : []));
  return parts.flatMap(({ image_url }) => (image_url === undefined ? [] : [Buffer.from(image_url.url.split(',')[1] ?? '', 'base64')]));
}

interface TransferredFile {
  readonly type: 'paste' | 'drop';
  readonly name: string;
  readonly base64: string;
}

/** Function that runs inside the page: pastes or drops a file. */
function transferFile({ type, name, base64 }: TransferredFile): void {
  const data = new DataTransfer();
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  data.items.add(new File([bytes], name, { type: name.endsWith('.png') ? 'image/png' : 'text/html' }));
  const event =
    type === 'paste'
      ? new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true })
      : new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true });
  document.querySelector('textarea')?.dispatchEvent(event);
}

/** Function that runs inside the page: React's properties of the buttons of each message, an object that every rendering replaces. */
function renderedProperties(): unknown[] {
  return [...document.querySelectorAll('.turn .turn-actions')].map((element) => {
    const [, properties] = Object.entries(element).find(([name]) => name.startsWith('__reactProps$')) ?? [];
    return properties;
  });
}

describeInBrowser('the playground', () => {
  let network: DemoNetwork;
  let dispose: (() => Promise<void>) | undefined;
  let person: Person;
  const agents: LightAgent[] = [];

  beforeAll(async () => {
    ({ network, dispose } = await startDemoNetwork({
      providerArgs: ['--model', 'demo-text', '--model', 'demo-image', '--context', '512'],
    }));
    agents.push(new LightAgent({ url: network.baseUrl, models: [SLOW] }));
    agents.push(new LightAgent({ url: network.baseUrl, models: [BREAKING] }));
    agents.push(new LightAgent({ url: network.baseUrl, models: [SEEING], visionModels: [SEEING] }));
    await Promise.all(agents.map(({ registered }) => registered));
    person = await newPerson(network, { deposit: 10_000_000 });
  });
  afterAll(async () => {
    await Promise.all(agents.map((agent) => agent.leave()));
    await dispose?.();
  });

  const open = (options: Partial<OpenPageOptions> = {}): Promise<Page> =>
    openPage('/playground', { baseUrl: network.baseUrl, signedInAs: person, ...options });
  const ask = async (page: Page, text: string, model?: string): Promise<void> => {
    if (model !== undefined) await page.getByLabel('Model', { exact: true }).selectOption(model);
    await page.getByRole('textbox', { name: 'Your message' }).fill(text);
    await page.keyboard.press('Enter');
  };
  const lastAnswer = (page: Page) => page.locator('.turn[data-role="assistant"]').last();

  it('shows a verified response with machine, tokens and cost, continues the conversation, and stores nothing', async () => {
    const page = await open();
    await page.getByText(/the page cannot promise end-to-end encryption/).waitFor();
    await expectAccessible(page);
    await page.getByLabel('System prompt').fill('Be brief.');
    await page.getByText('Parameters').click();
    await page.getByLabel('Temperature').fill('hot');
    await page.getByText('Temperature is a number from 0 to 2.').waitFor();
    await page.getByLabel('Temperature').fill('0');
    await page.getByLabel('Seed').fill('7');
    await ask(page, 'What is the capital of France?', network.model);
    const mark = lastAnswer(page).getByRole('button', { name: 'Verified · simulated machine' });
    await mark.waitFor();
    // One verdict, in amber: nothing green beside a simulated machine.
    expect(await lastAnswer(page).locator('.verdict').count()).toBe(1);
    expect(await lastAnswer(page).locator('[data-tone="good"]').count()).toBe(0);
    expect(await lastAnswer(page).textContent()).toMatch(/Paris/);
    await expect.poll(() => lastAnswer(page).textContent()).toMatch(/\d+ → \d+ tokens\$0\.\d+First text \S+ m?s[\d.]+ tokens\/s/);
    await screenshot(page, 'playground-verified');
    await mark.click();
    const details = page.getByRole('dialog');
    await details.getByText('The enclave key signed the stated hash.').waitFor();
    await details.getByText(/this machine has a simulated enclave/).waitFor();
    for (const title of ['Who answered', 'What was checked', 'What this does not prove']) {
      await details.getByRole('heading', { name: title }).waitFor();
    }
    await details.getByText('Verified · simulated machine', { exact: true }).first().waitFor();
    expect(await details.locator('.facts').textContent()).toMatch(/Trust level.*, simulated.*Model.*Tokens/);
    await screenshot(page, 'playground-report');
    expect(await details.locator('[data-ok="false"]').count()).toBe(0);
    expect(await details.locator('[data-ok="true"]').count()).toBeGreaterThan(10);
    await expectAccessible(page);
    await page.keyboard.press('Escape');
    await ask(page, 'And of Italy?');
    await expect.poll(() => page.getByRole('button', { name: 'Verified' }).count()).toBe(2);
    const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href, document.cookie]));
    expect(kept).not.toMatch(/France|Paris|Italy|service-/);
    await expectAccessible(page);
    await page.getByRole('button', { name: 'Clear conversation' }).click();
    await page.getByText('Start a conversation', { exact: true }).waitFor();
  });

  it('shows FAILED for a tampered response, and for a machine whose record names another key', async () => {
    const page = await open();
    const tamper = async (route: Route): Promise<void> => {
      const response = await route.fetch();
      await route.fulfill({ response, body: (await response.text()).replace(/"content":"(?=[^"])/, '"content":"Never! ') });
    };
    await page.route('**/v1/chat/completions', tamper);
    await page.getByText('Parameters').click();
    await page.getByLabel('Temperature').fill('0');
    await ask(page, 'What is the capital of France?', network.model);
    const mark = lastAnswer(page).getByRole('button', { name: 'FAILED' });
    await mark.waitFor();
    expect(await lastAnswer(page).textContent()).toMatch(/Never! /);
    await screenshot(page, 'playground-failed');
    await expectAccessible(page);
    await mark.click();
    await page.getByText('The bytes received are not the bytes that the stated hash was made of.').waitFor();
    await page.keyboard.press('Escape');
    await page.unroute('**/v1/chat/completions', tamper);

    await page.route('**/v1/providers/attestation', async (route) => {
      const response = await route.fetch();
      const feed = (await response.json()) as { providers: { provider_id: string; se_public_key: string }[] };
      const [first, second] = feed.providers;
      if (first === undefined || second === undefined) throw new Error('two machines are expected');
      for (const provider of feed.providers) provider.se_public_key = (provider === first ? second : first).se_public_key;
      await route.fulfill({ response, json: feed });
    });
    await ask(page, 'What is the capital of France?');
    await lastAnswer(page).getByRole('button', { name: 'FAILED' }).waitFor();
  });

  it('stops a response in the page and on the machine', async () => {
    const page = await open();
    const [agent] = agents;
    await ask(page, promptOf(LONG), SLOW);
    await expect.poll(() => lastAnswer(page).textContent()).toMatch(/w{3,}1/);
    await page.getByRole('button', { name: 'Stop' }).click();
    await lastAnswer(page)
      .getByText(/^Stopped\./)
      .waitFor();
    await expect.poll(() => agent?.counts.cancels).toBe(1);
    await page.getByRole('button', { name: 'Send' }).waitFor();
    expect(
      await lastAnswer(page)
        .getByRole('button', { name: /Verified|FAILED/ })
        .count(),
    ).toBe(0);
  });

  it('renders only the arriving response again', async () => {
    const page = await open();
    await ask(page, promptOf({ words: 2 }), SLOW);
    // The cost is the last change of a response.
    await expect.poll(() => lastAnswer(page).textContent()).toMatch(/Verified.*\$0\.\d+/);
    await ask(page, promptOf(LONG));
    await expect.poll(() => lastAnswer(page).textContent()).toMatch(/w{3,}1/);
    const before = await page.evaluateHandle(renderedProperties);
    await expect.poll(() => lastAnswer(page).textContent()).toMatch(/w{3,}20/);
    const after = await page.evaluateHandle(renderedProperties);
    const isSame = await page.evaluate(([one, two]) => one.map((properties, index) => properties === two[index]), [before, after] as const);
    // Two questions and two responses.
    expect(isSame).toEqual([true, true, true, false]);
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByRole('button', { name: 'Send' }).waitFor();
  });

  it('formats responses, and edits, regenerates and deletes messages with the focus in place', async () => {
    const page = await open({ prepare: (context) => context.grantPermissions(['clipboard-read', 'clipboard-write']) });
    const clipboard = (): Promise<string> => page.evaluate(() => navigator.clipboard.readText());
    const focused = (): Promise<string | null> =>
      page.evaluate(() => document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.getAttribute('data-role') ?? null);
    const action = (name: string) => page.getByRole('button', { name, exact: true }).last();
    await ask(page, promptOf({ words: 1, text: MARKDOWN }), SLOW);
    const answer = lastAnswer(page);
    await answer.getByRole('button', { name: 'Verified' }).waitFor();
    await answer.getByRole('heading', { name: 'Plan' }).waitFor();
    const links = await answer
      .locator('.markdown a')
      .evaluateAll((all) => all.map((link) => [link.getAttribute('href'), link.getAttribute('rel')]));
    expect(links).toEqual([['https://example.com/a', 'noopener noreferrer nofollow']]);
    expect(await answer.locator('.markdown :is(table, ol)').count()).toBe(2);
    expect(await answer.locator('img').count()).toBe(0);
    await answer.getByText('<img src=x onerror=alert(1)> [Image: chart]').waitFor();
    await answer.getByRole('button', { name: 'Copy code' }).click();
    await expect.poll(clipboard).toBe('print("hello")');
    await action('Copy response').click();
    await expect.poll(clipboard).toBe(MARKDOWN);
    await action('Show plain text').click();
    await expect.poll(() => answer.locator('.turn-text').textContent()).toBe(MARKDOWN);
    await action('Show plain text').click();
    await screenshot(page, 'playground-formatted');
    await expectAccessible(page);

    await action('Regenerate response').press('Enter');
    await answer.getByText('2 / 2').waitFor();
    await answer.getByRole('button', { name: 'Verified' }).waitFor();
    await expect.poll(focused).toBe('Regenerate response');
    await action('Previous version').click();
    await answer.getByText('1 / 2').waitFor();

    await ask(page, promptOf({ words: 2 }));
    await expect.poll(() => lastAnswer(page).textContent()).toMatch(/www1.*Verified/);
    await expect.poll(() => page.locator('.turn').count()).toBe(4);
    await page.getByRole('button', { name: 'Edit message' }).first().press('Enter');
    const editor = page.getByRole('textbox', { name: 'Edit message' });
    await editor.press('Escape');
    await expect.poll(focused).toBe('Edit message');
    await page.getByRole('button', { name: 'Edit message' }).first().press('Enter');
    await editor.fill(promptOf({ words: 3 }));
    await editor.press('Enter');
    await expect.poll(() => lastAnswer(page).textContent()).toMatch(/www2.*Verified/);
    await expect.poll(() => page.locator('.turn').count()).toBe(2);
    await expect.poll(() => page.evaluate(() => document.activeElement?.tagName)).toBe('TEXTAREA');
    await action('Delete response').click();
    await expect.poll(async () => [await page.locator('.turn').count(), await focused()]).toEqual([1, 'user']);
    await action('Send message again').click();
    await expect.poll(() => lastAnswer(page).textContent()).toMatch(/www2.*Verified/);
  });

  it('compares two models on a phone and side by side, and shows both requests as code', async () => {
    const page = await open({ theme: 'dark', width: 'phone' });
    await page.getByLabel('Model', { exact: true }).selectOption(SLOW);
    await page.getByLabel('Compare with another').check();
    await page.getByLabel('Second model').selectOption(network.model);
    await page.getByText('Parameters').click();
    await page.getByLabel('Max tokens').fill('40');
    await ask(page, promptOf({ words: 2 }));
    const answers = lastAnswer(page).locator('.answer');
    for (const index of [0, 1]) {
      await answers.nth(index).getByRole('button', { name: 'Verified' }).waitFor();
      await expect.poll(() => answers.nth(index).textContent()).toMatch(/\$0\.\d+.*tokens\/s/);
    }
    expect(await answers.locator('.answer-model').allTextContents()).toEqual([SLOW, network.model]);
    // One call measures both, because the page may scroll between two calls.
    const boxes = () => answers.evaluateAll((all) => all.map((one) => one.getBoundingClientRect()).map(({ x, y }) => ({ x, y })));
    const [top, below] = await boxes();
    expect(below?.y).toBeGreaterThan(top?.y ?? Number.NaN);
    await screenshot(page, 'playground-compare-phone');
    await expectAccessible(page);
    expect(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)).toBeLessThanOrEqual(0);
    await page.setViewportSize({ width: 1440, height: 900 });
    const [left, right] = await boxes();
    expect([right?.y, (right?.x ?? 0) > (left?.x ?? 0)]).toEqual([left?.y, true]);
    await screenshot(page, 'playground-compare');
    await answers.nth(1).getByRole('button', { name: 'Regenerate response' }).click();
    await answers.nth(1).getByText('2 / 2').waitFor();
    expect(await answers.nth(0).getByText('/ 2').count()).toBe(0);
    await answers.nth(1).getByRole('button', { name: 'Verified' }).waitFor();

    await page.getByRole('textbox', { name: 'Your message' }).fill("What's next?");
    await page.getByRole('button', { name: 'View code' }).click();
    const dialog = page.getByRole('dialog');
    const code = dialog.locator('pre:visible');
    await expect.poll(() => code.textContent()).toContain(`curl --no-buffer ${network.baseUrl}/v1/chat/completions`);
    expect(await code.textContent()).toContain("What'\\''s next?");
    await dialog.getByRole('button', { name: network.model }).click();
    await dialog.getByRole('tab', { name: 'Python' }).click();
    await expect.poll(() => code.textContent()).toContain('    max_tokens=40,\n    stream=True,');
    expect(await code.textContent()).toContain('os.environ["NETWORK_API_KEY"]');
    expect(await code.textContent()).toContain(`model="${network.model}"`);
    await screenshot(page, 'playground-code');
    await expectAccessible(page);
    await page.keyboard.press('Escape');
    await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toBe('View code');
  });

  it.each(LOOKS)('attaches images by picker, paste and drop ($theme, $width)', async (look) => {
    const page = await open(look);
    const attach = page.getByRole('button', { name: 'Attach images' });
    const transfer = (file: TransferredFile): Promise<void> => page.evaluate(transferFile, file);
    await page.getByLabel('Model', { exact: true }).selectOption(SLOW);
    await expect.poll(() => attach.getAttribute('aria-disabled')).toBe('true');
    await page.getByText(`${SLOW} reads text only. Choose a model that reads images.`).waitFor();
    await page.getByLabel('Model', { exact: true }).selectOption(SEEING);
    const photo = await sharp({ create: { width: 3000, height: 1000, channels: 3, background: 'red' } })
      .withExif({ IFD0: { Copyright: 'a place' } })
      .jpeg()
      .toBuffer();
    const chooser = page.waitForEvent('filechooser');
    await attach.press('Enter');
    await (await chooser).setFiles({ name: 'photo.jpg', mimeType: 'image/jpeg', buffer: photo });
    const attached = page.getByRole('list', { name: 'Attached images' });
    await attached.getByAltText('photo.jpg').waitFor();
    const square = await sharp({ create: { width: 40, height: 40, channels: 3, background: 'blue' } })
      .png()
      .toBuffer();
    for (const [type, name] of [
      ['paste', 'pasted.png'],
      ['drop', 'dropped.png'],
    ] as const) {
      await transfer({ type, name, base64: square.toString('base64') });
      await attached.getByAltText(name).waitFor();
    }
    await transfer({ type: 'drop', name: 'page.html', base64: 'PGI+' });
    await page.getByRole('alert').getByText('page.html is not an image that this browser can read.').waitFor();
    await attached.getByRole('button', { name: 'Remove pasted.png' }).press('Enter');
    await expect.poll(() => attached.getByRole('img').count()).toBe(2);
    await screenshot(page, `playground-images-${look.width}`);
    await expectAccessible(page);

    const sent = page.waitForRequest('**/v1/chat/completions');
    await ask(page, promptOf({ words: 2 }));
    const [first, second] = imagesIn(await sent);
    expect(await sharp(first).metadata()).toMatchObject({ format: 'jpeg', width: 2048, height: 683 });
    expect(first?.toString('latin1')).not.toContain('a place');
    expect(await sharp(second).metadata()).toMatchObject({ format: 'png', width: 40 });
    await lastAnswer(page).getByRole('button', { name: 'Verified' }).waitFor();
    expect(await attached.count()).toBe(0);
    await page.getByRole('list', { name: 'Images of the message' }).getByAltText('photo.jpg').waitFor();
    await page.getByLabel('Keep this conversation in this tab').check();
    await expect.poll(() => page.evaluate(() => sessionStorage.getItem('playground-conversation'))).toContain('photo.jpg');
    await page.reload();
    const again = page.waitForRequest('**/v1/chat/completions');
    await page.getByRole('button', { name: 'Regenerate response' }).click();
    expect(imagesIn(await again)).toEqual([first, second]);
    await lastAnswer(page).getByRole('button', { name: 'Verified' }).waitFor();
    await page.getByRole('button', { name: 'View code' }).click();
    await page.getByRole('dialog').getByText('Save the images as image-1.jpg, image-2.png').waitFor();
    await expectAccessible(page);
    await page.keyboard.press('Escape');
    expect(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)).toBeLessThanOrEqual(0);
  });

  it('keeps the conversation in the tab only while the user wants it', async () => {
    const page = await open();
    const stored = (): Promise<string | null> => page.evaluate(() => sessionStorage.getItem('playground-conversation'));
    await ask(page, promptOf({ words: 2 }), SLOW);
    await lastAnswer(page).getByRole('button', { name: 'Verified' }).waitFor();
    expect(await stored()).toBeNull();
    await page.getByLabel('Keep this conversation in this tab').check();
    await expect.poll(stored).toContain('www1');
    expect(await stored()).not.toContain('service-');
    await page.reload();
    await lastAnswer(page).getByRole('button', { name: 'Verified · simulated machine' }).click();
    await page.getByRole('dialog').getByText('The enclave key signed the stated hash.').waitFor();
    await page.keyboard.press('Escape');
    await expect.poll(() => page.getByLabel('Model', { exact: true }).inputValue()).toBe(SLOW);
    await page.getByRole('button', { name: 'Clear conversation' }).click();
    await expect.poll(stored).not.toContain('www1');
    await page.getByLabel('Keep this conversation in this tab').uncheck();
    await expect.poll(stored).toBeNull();
    expect(await page.evaluate(() => localStorage.length)).toBe(0);
  });

  it('offers a remedy for a lost machine, no free machine, a lost connection and an insufficient balance', async () => {
    const page = await open({ expectedErrors: [/503|ERR_CONNECTION_RESET/] });
    const [, leaving] = agents;
    await ask(page, promptOf(LONG), BREAKING);
    await expect.poll(() => lastAnswer(page).textContent()).toMatch(/w{3,}1/);
    await leaving?.leave();
    await lastAnswer(page).getByRole('alert').getByText('The response was interrupted').waitFor();
    await expectAccessible(page);
    await page.route('**/v1/chat/completions', (route) =>
      route.fulfill({
        status: 503,
        headers: { 'retry-after': '2', 'content-type': 'application/json' },
        json: {
          error: { message: 'No provider is free to serve this model now.', type: 'server_error', param: null, code: 'no_provider' },
        },
      }),
    );
    await ask(page, 'Hello', network.model);
    await lastAnswer(page).getByText('No machine is free').waitFor();
    await page.unrouteAll();
    await page.route('**/v1/chat/completions', (route) => route.abort('connectionreset'));
    await lastAnswer(page).getByRole('button', { name: 'Try again', exact: true }).click();
    await lastAnswer(page).getByText('Connection lost').waitFor();
    await page.unrouteAll();
    await lastAnswer(page).getByRole('button', { name: 'Try again', exact: true }).click();
    await lastAnswer(page).getByRole('button', { name: 'Verified' }).waitFor();

    const poor = await newPerson(network);
    const broke = await open({ signedInAs: poor, expectedErrors: [/402/] });
    await broke.getByRole('heading', { name: 'First steps' }).waitFor();
    await ask(broke, 'Hello', network.model);
    await lastAnswer(broke).getByText('Insufficient balance').waitFor();
    await lastAnswer(broke).getByRole('link', { name: 'Add test funds' }).waitFor();
    await broke.getByRole('button', { name: /test funds/ }).click();
    await broke.getByText('$10.00 added').waitFor();
    // Retries the same question.
    await lastAnswer(broke).getByRole('button', { name: 'Try again', exact: true }).click();
    await lastAnswer(broke).getByRole('button', { name: 'Verified' }).waitFor();
  });

  it('generates a verified image, and shows FAILED for a tampered one', async () => {
    const page = await open();
    await page.getByRole('button', { name: 'Images', exact: true }).click();
    await page.getByLabel('Size').selectOption('128x128');
    await page.getByLabel('Seed').fill('1');
    const generate = async (): Promise<void> => {
      await page.getByRole('textbox', { name: 'Image description' }).fill('a red circle on a blue background');
      await page.keyboard.press('Enter');
    };
    await generate();
    await page.getByRole('button', { name: 'Verified' }).waitFor();
    const image = page.getByRole('img', { name: 'a red circle on a blue background' });
    const size = () => image.evaluate((element: HTMLImageElement) => [element.naturalWidth, element.naturalHeight]);
    await expect.poll(size).toEqual([128, 128]);
    await expect.poll(() => page.locator('.image-job').first().textContent()).toMatch(/\$0\.0/);
    await screenshot(page, 'playground-image');
    await expectAccessible(page);
    const download = page.waitForEvent('download');
    await page.getByRole('link', { name: 'Download' }).click();
    const file = await download;
    expect(file.suggestedFilename()).toBe('a-red-circle-on-a-blue-background-seed-1.png');
    expect(
      readFileSync(await file.path())
        .subarray(1, 4)
        .toString(),
    ).toBe('PNG');
    await page.getByRole('button', { name: 'View code' }).click();
    await page.getByRole('tab', { name: 'Python' }).click();
    await page.locator('pre:visible', { hasText: 'extra_body={"seed": 1}' }).waitFor();
    await expectAccessible(page);
    await page.keyboard.press('Escape');
    await page.route(/\.png$/, async (route) => {
      const response = await route.fetch();
      const body = await response.body();
      body[body.length - 20] = (body[body.length - 20] ?? 0) ^ 1;
      await route.fulfill({ response, body });
    });
    await generate();
    const mark = page.locator('.image-job').first().getByRole('button', { name: 'FAILED' });
    await mark.waitFor();
    await mark.click();
    await page.getByText('The receipt names another list of images.').waitFor();
  });

  it('leads a new user from sign-up to a verified response, on a phone in the dark theme', async () => {
    const page = await openPage('/sign-up', { baseUrl: network.baseUrl, theme: 'dark', width: 'phone' });
    await page.getByLabel('Name').fill('Grace');
    await page.getByLabel('Email address').fill(`grace-${process.pid}@example.com`);
    await page.getByRole('textbox', { name: 'Password' }).fill('correct horse battery');
    await page.getByRole('button', { name: 'Create account' }).click();
    await page.getByRole('button', { name: /in test funds/ }).click();
    await page.getByText('$10.00 added').waitFor();
    await page.getByRole('link', { name: 'Open the playground' }).click();
    await page.getByRole('button', { name: 'What is the capital of France?' }).click();
    await lastAnswer(page).getByRole('button', { name: 'Verified' }).waitFor();
    await screenshot(page, 'playground-phone');
    await lastAnswer(page).getByRole('button', { name: 'Verified' }).click();
    await page.getByRole('dialog').getByText('What these words mean').click();
    await page.getByRole('dialog').getByText('SHA-256 that the answer names for its own bytes.').waitFor();
    await screenshot(page, 'playground-report-phone');
    await expectAccessible(page);
    await page.keyboard.press('Escape');
    await expectAccessible(page);
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    expect(overflow).toBeLessThanOrEqual(0);
    await page.goto('/quick-start');
    await page.getByRole('button', { name: 'Create a key', exact: true }).click();
    await page.locator('pre', { hasText: /Bearer service-/ }).waitFor();
    await page.getByRole('tab', { name: 'Anthropic, Python' }).click();
    await page.locator('pre', { hasText: `base_url="${network.baseUrl}"` }).waitFor();
    await expect.poll(() => page.getByRole('heading', { name: 'First steps' }).count()).toBe(0);
  });
});
