/** Links between documents, and from documents to files, lead to existing files. Test files that a document names exist. */
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

/** Paths of test files that a Markdown text names. */
function testsIn(text: string): string[] {
  return [...text.matchAll(/`([^`\s]+\.test\.ts)`/g)].map(([, path = '']) => path);
}

describe('test files that security documents name', () => {
  it.each(['docs/security-model.md', 'docs/security.md'])('of %s exist', (document) => {
    const paths = testsIn(readFileSync(join(ROOT, document), 'utf8'));
    expect(paths.length).toBeGreaterThan(2);
    expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });

  it('stand at each claim of the security model', () => {
    const text = readFileSync(join(ROOT, 'docs/security-model.md'), 'utf8');
    const claims = text.split(/^(?=- \*\*|#)/m).filter((part) => /^- \*\*[\w-]+: (?:prevented|detected|limited)/.test(part));
    expect(claims.length).toBeGreaterThan(15);
    expect(claims.filter((claim) => testsIn(claim).length === 0)).toEqual([]);
  });
});
