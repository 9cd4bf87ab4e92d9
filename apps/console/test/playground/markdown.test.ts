import { describe, expect, it } from 'vitest';
import { type MarkdownNode, parseMarkdown } from '../../src/pages/playground/markdown/parse-markdown.js';

/** Nodes as compact markup, which makes expected values readable. */
function markup(nodes: readonly MarkdownNode[]): string {
  return nodes.map(markupOf).join('');
}

function markupOf(node: MarkdownNode): string {
  switch (node.type) {
    case 'text':
      return node.text;
    case 'break':
    case 'rule':
      return `(${node.type})`;
    case 'code':
      return `(code ${node.text})`;
    case 'code-block':
      return `(code-block ${node.language}: ${node.text})`;
    case 'link':
      return `(link ${node.href} ${markup(node.children)})`;
    case 'heading':
      return `(h${node.level} ${markup(node.children)})`;
    case 'cell':
      return `(${node.header ? 'th' : 'td'}${node.align ?? ''} ${markup(node.children)})`;
    case 'group':
      return markup(node.children);
    case 'element':
      return `(${node.tag}${node.start ?? ''} ${markup(node.children)})`;
  }
}
const parse = (text: string): string => markup(parseMarkdown(text));

describe('the Markdown of a response', () => {
  it('has headings, lists, tables, code and emphasis', () => {
    expect(parse('# One\n\n### Two\n\n# Three')).toBe('(h3 One)(h4 Two)(h3 Three)');
    expect(parse('- a\n- b\n\n3. c')).toBe('(ul (li a)(li b))(ol3 (li c))');
    expect(parse('|a||\n|:-:|-|\n|1|2|')).toBe('(table (thead (tr (thcenter a)(td )))(tbody (tr (tdcenter 1)(td 2))))');
    expect(parse('```ts title=x\nlet a = 1;\n```')).toBe('(code-block ts: let a = 1;)');
    expect(parse('**a** *b* ~~c~~ `d`\ne')).toBe('(p (strong a) (em b) (del c) (code d)(break)e)');
    expect(parse('> a\n\n---')).toBe('(blockquote (p a))(rule)');
  });

  it('links to http, https and mailto addresses only', () => {
    expect(parse('[a](https://x.example/y)')).toBe('(p (link https://x.example/y a))');
    expect(parse('<mailto:a@x.example>')).toBe('(p (link mailto:a@x.example mailto:a@x.example))');
    expect(parse('see http://b.example.')).toBe('(p see (link http://b.example http://b.example).)');
    expect(parse('[](https://x.example)')).toBe('(p (link https://x.example https://x.example))');
    for (const target of [
      'javascript:alert(1)',
      'JaVaScRiPt:alert(1)',
      'data:text/html,x',
      '/account',
      '//x.example',
      'file:///etc',
      'vbscript:x',
      '&#106;avascript:x',
    ]) {
      expect(parse(`[a](${target})`), target).not.toContain('(link');
    }
    expect(parse('README.md and www.example.com')).not.toContain('(link');
  });

  it('leaves HTML as text, and images as their description', () => {
    expect(parse('<script>alert(1)</script>')).toBe('(p <script>alert(1)</script>)');
    expect(parse('<b onclick="x">hi</b>')).toBe('(p <b onclick="x">hi</b>)');
    expect(parse('![a cat](https://x.example/cat.png) ![](https://x.example)')).toBe('(p [Image: a cat] [Image])');
  });

  it('is bounded in depth', () => {
    const depth = (nodes: readonly MarkdownNode[]): number =>
      Math.max(0, ...nodes.map((node) => 1 + ('children' in node ? depth(node.children) : 0)));
    for (const nesting of ['>', '> ', '- ', '1. ', '*a ', '[', '![']) {
      expect(depth(parseMarkdown(nesting.repeat(5000))), nesting).toBeLessThan(60);
    }
  });
});
