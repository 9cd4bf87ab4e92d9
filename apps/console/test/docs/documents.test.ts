import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Element, Root } from 'hast';
import { describe, expect, it } from 'vitest';
import { documentPaths, pathOfPage, REPOSITORY } from '../../build/documents/files.js';
import { renderDocument } from '../../build/documents/render.js';
import { excerpt } from '../../src/pages/docs/excerpt.js';

const read = (path: string): string => readFileSync(join(REPOSITORY, path), 'utf8');
const documents = documentPaths().map((path) => ({ path, page: pathOfPage(path), ...renderDocument(path, read(path), pathOfPage) }));

function elements(tree: Root | Element): Element[] {
  return tree.children.flatMap((node) => (node.type === 'element' ? [node, ...elements(node)] : []));
}

describe('the documents of the repository', () => {
  it('each have a page of their own, linked from the list by reader or the list of decisions', () => {
    expect(documents.length).toBeGreaterThan(60);
    expect(new Set(documents.map(({ page }) => page)).size).toBe(documents.length);
    const lists = documents.filter(({ page }) => page === '/docs' || page === '/docs/decisions');
    const linked = new Set(lists.flatMap(({ tree }) => elements(tree).map(({ properties }) => properties.href)));
    expect(documents.map(({ page }) => page).filter((page) => page !== '/docs' && !linked.has(page ?? ''))).toEqual([]);
  });

  it('link only to pages and anchors that exist', () => {
    const anchors = new Map(
      documents.map(({ page, tree }) => [
        page,
        new Set(elements(tree).flatMap(({ properties: { id } }) => (id === undefined ? [] : [id]))),
      ]),
    );
    let checked = 0;
    for (const { path, page, tree } of documents) {
      for (const { tagName, properties } of elements(tree)) {
        if (tagName !== 'a') continue;
        const href = String(properties.href);
        expect(href, path).toMatch(/^(?:\/docs(?:\/|#|$)|#|https:\/\/|http:\/\/|mailto:|file:docs\/[\w-]+\.json$)/);
        if (!/^[/#]/.test(href)) continue;
        const [target = '', anchor] = href.split('#');
        const found = anchors.get(target === '' ? page : target);
        expect(found, `${path}: ${href}`).toBeDefined();
        if (anchor !== undefined) expect(found?.has(anchor), `${path}: ${href}`).toBe(true);
        checked++;
      }
    }
    expect(checked).toBeGreaterThan(100);
  });

  it('have no anchor that the frame of the console uses', () => {
    for (const { path, tree } of documents) {
      for (const { properties } of elements(tree)) expect(['main', 'root'], path).not.toContain(properties.id);
    }
  });

  it('are whole in the text for search', () => {
    const clients = documents.find(({ page }) => page === '/docs/clients');
    expect(clients?.sections.map(({ title }) => title)).toContain('Routing preferences');
    const words = (text: string): number => text.match(/\p{L}{3,}/gu)?.length ?? 0;
    const inSections = clients?.sections.reduce((sum, { title, text }) => sum + words(title) + words(text), 0) ?? 0;
    expect(inSections / words(read('docs/clients.md'))).toBeGreaterThan(0.95);
  });
});

describe('rendering', () => {
  const render = (markdown: string) => elements(renderDocument('docs/a.md', `# A\n\n${markdown}`, pathOfPage).tree);

  it('drops raw HTML and addresses that run scripts', () => {
    const nodes = render('<script>alert(1)</script>\n\n<img src=x onerror=alert(1)>\n\n[x](javascript:alert(1)) <b onclick="a()">b</b>');
    expect(nodes.map(({ tagName }) => tagName)).not.toEqual(expect.arrayContaining(['script']));
    expect(nodes.map(({ tagName }) => tagName)).not.toEqual(expect.arrayContaining(['img']));
    expect(JSON.stringify(nodes)).not.toMatch(/javascript:|onclick|onerror/);
  });

  it('points links at pages, and shows links to source files as text', () => {
    const links = render(
      '[a](clients.md#limits) [b](decisions/README.md) [c](../CONTRIBUTING.md) [d](../apps/x.ts) [e](e2e-vectors.json) [f](https://a.example/)',
    ).filter(({ tagName }) => tagName === 'a' || tagName === 'span');
    expect(links.map(({ tagName, properties }) => [tagName, properties.href ?? properties.title])).toEqual([
      ['a', '/docs/clients#limits'],
      ['a', '/docs/decisions'],
      ['a', '/docs/contributing'],
      ['span', 'apps/x.ts'],
      ['a', 'file:docs/e2e-vectors.json'],
      ['a', 'https://a.example/'],
    ]);
  });

  it('needs a title', () => {
    expect(() => renderDocument('docs/a.md', 'text', pathOfPage)).toThrow('docs/a.md has no heading');
  });
});

it('an excerpt surrounds the first match, in whole words', () => {
  const text = `${'before '.repeat(40)}the needle lies here ${'after '.repeat(60)}`.trim();
  const found = excerpt(text, ['missing', 'needle']);
  expect(found).toMatch(/^… before .*the needle lies here after .*after …$/);
  expect(found.length).toBeLessThan(190);
  expect(excerpt('short text', ['text'])).toBe('short text');
  expect(excerpt(text, [])).toMatch(/^before .* …$/);
});
