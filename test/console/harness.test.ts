/** The page watch detects each problem it exists for; otherwise all other console tests could pass blindly. */
import { expect, it } from 'vitest';
import { findingsOf } from '../support/console/accessible.js';
import { describeInBrowser } from '../support/console/browser.js';
import { expectStill, openPage, problemsOf, shiftsOf } from '../support/console/open-page.js';

describeInBrowser('the page checks', () => {
  it('detect policy violations, errors, requests to other origins, layout shifts and accessibility findings', async () => {
    const page = await openPage('/', { expectedErrors: [/./] });
    expect(problemsOf(page)).toEqual([]);
    await page.evaluate(() => {
      const style = document.createElement('style');
      style.textContent = 'body { color: red }';
      document.head.append(style);
    });
    await expect.poll(() => problemsOf(page).join('\n')).toMatch(/Content Security Policy/);
    await page.evaluate(
      () => void setTimeout(() => document.querySelector('.none')?.dispatchEvent(new Event('x')) ?? (null as never as Event).type),
    );
    await expect.poll(() => problemsOf(page).join('\n')).toMatch(/script: /);
    await page.evaluate(() => void fetch('http://127.0.0.2:9/').catch(() => {}));
    await expect
      .poll(() => problemsOf(page).join('\n'))
      .toMatch(/Content Security Policy.*127\.0\.0\.2|somebody else: http:\/\/127\.0\.0\.2/s);

    await page.evaluate(() => {
      const image = document.createElement('img');
      image.src = '/favicon.svg';
      document.querySelector('main')?.prepend(image);
    });
    await expect.poll(() => findingsOf(page)).toEqual(expect.arrayContaining([expect.stringMatching(/^image-alt/)]));
    await page.evaluate(() => {
      const box = document.createElement('div');
      box.style.height = '400px';
      document.querySelector('main')?.prepend(box);
    });
    const moved = () =>
      expectStill(page).then(
        () => 'still',
        () => 'moved',
      );
    await expect.poll(moved).toBe('moved');
    expect((await shiftsOf(page)).length).toBeGreaterThan(0);
  });
});
