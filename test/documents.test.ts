/** Links between documents, and from documents to files, lead to existing files. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '..');
const documents = execFileSync('git', ['ls-files', '*.md'], { cwd: ROOT, encoding: 'utf8' }).trim().split('\n');

/** Relative link targets of a Markdown text, without code blocks and anchors. */
function linksOf(text: string): string[] {
  const prose = text.replaceAll(/```[\s\S]*?```/g, '').replaceAll(/`[^`\n]*`/g, '');
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target.replace(/#.*$/, ''))
    .filter((target) => target !== '' && !/^[a-z][a-z+.-]*:/i.test(target));
}

describe('links in documents', () => {
  it('are found', () => {
    expect(linksOf('[a](b.md#c) [d](https://e) `[f](g)` [h](#i)')).toEqual(['b.md']);
    expect(linksOf(readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8')).length).toBeGreaterThan(40);
  });

  it.each(documents)('of %s exist', (document) => {
    const links = linksOf(readFileSync(join(ROOT, document), 'utf8'));
    expect(links.filter((target) => !existsSync(join(ROOT, dirname(document), target)))).toEqual([]);
  });
});
