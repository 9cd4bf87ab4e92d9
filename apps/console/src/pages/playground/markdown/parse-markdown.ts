/**
 * `parseMarkdown`: parses the Markdown of a response into a tree. A provider's output is untrusted: HTML stays text, images are replaced by
 * their description, and only http, https and mailto URLs become links.
 */
import MarkdownIt, { type Token } from 'markdown-it';

/** Tags of nodes with type `element`. Key: markdown-it's token type without `_open`. */
const ELEMENTS = {
  paragraph: 'p',
  blockquote: 'blockquote',
  bullet_list: 'ul',
  ordered_list: 'ol',
  list_item: 'li',
  table: 'table',
  thead: 'thead',
  tbody: 'tbody',
  tr: 'tr',
  em: 'em',
  strong: 'strong',
  s: 'del',
} as const;

export type MarkdownNode =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'break' }
  | { readonly type: 'rule' }
  | { readonly type: 'code'; readonly text: string }
  | { readonly type: 'code-block'; readonly language: string; readonly text: string }
  | { readonly type: 'link'; readonly href: string; readonly children: readonly MarkdownNode[] }
  | { readonly type: 'heading'; readonly level: 3 | 4 | 5 | 6; readonly children: readonly MarkdownNode[] }
  | { readonly type: 'cell'; readonly header: boolean; readonly align: Alignment | null; readonly children: readonly MarkdownNode[] }
  | {
      readonly type: 'element';
      readonly tag: (typeof ELEMENTS)[keyof typeof ELEMENTS];
      /** First number of an ordered list, unless 1. */
      readonly start: number | null;
      readonly children: readonly MarkdownNode[];
    }
  /** Children that are rendered without a parent element, such as the paragraphs of a tight list. */
  | { readonly type: 'group'; readonly children: readonly MarkdownNode[] };

type Alignment = 'left' | 'center' | 'right';

/** Maximum depth of nested markup. Deeper quotes and lists are dropped; deeper inline markup stays text. */
const MAX_NESTING = 40;
const MAX_LANGUAGE = 24;
const ALLOWED_SCHEME = /^(?:https?:\/\/|mailto:)/i;

const parser = new MarkdownIt({ html: false, linkify: true, maxNesting: MAX_NESTING });
parser.validateLink = (url) => ALLOWED_SCHEME.test(url);
// Without a scheme, file names such as `README.md` would become links.
parser.linkify.set({ fuzzyLink: false, fuzzyEmail: false });

export function parseMarkdown(text: string): readonly MarkdownNode[] {
  const levels = new HeadingLevels();
  return treeOf(parser.parse(text, {}), levels);
}

/** Assigns heading levels from `h3` on, below the page's `h2`, and without gaps, as accessibility guidelines require. */
class HeadingLevels {
  #previous = 2;

  next(written: number): 3 | 4 | 5 | 6 {
    this.#previous = Math.min(written + 2, this.#previous + 1, 6);
    return this.#previous as 3 | 4 | 5 | 6;
  }
}

/** Nests the parser's flat list of tokens. */
function treeOf(tokens: readonly Token[], levels: HeadingLevels): MarkdownNode[] {
  const root: MarkdownNode[] = [];
  const open: { readonly token: Token; readonly children: MarkdownNode[] }[] = [];
  for (const token of tokens) {
    if (token.nesting === 1) {
      open.push({ token, children: [] });
      continue;
    }
    const opened = token.nesting === -1 ? open.pop() : undefined;
    const nodes = opened === undefined ? leafNodes(token, levels) : [parentNode(opened.token, opened.children, levels)];
    (open.at(-1)?.children ?? root).push(...nodes.filter((node) => node !== null));
  }
  return root;
}

/** Null for a heading without content. */
function parentNode(token: Token, children: MarkdownNode[], levels: HeadingLevels): MarkdownNode | null {
  const name = token.type.replace(/_open$/, '');
  switch (name) {
    case 'heading':
      return children.length === 0 ? null : { type: 'heading', level: levels.next(Number(token.tag.slice(1))), children };
    case 'link':
      return linkNode(String(token.attrGet('href') ?? ''), children);
    case 'th':
    case 'td':
      return { type: 'cell', header: name === 'th' && children.length > 0, align: alignmentOf(token), children };
    case 'ordered_list': {
      const start = Number(token.attrGet('start') ?? 1);
      return { type: 'element', tag: 'ol', start: start === 1 ? null : start, children };
    }
    default:
      if (token.hidden || !isElement(name)) return { type: 'group', children };
      return { type: 'element', tag: ELEMENTS[name], start: null, children };
  }
}

function isElement(name: string): name is keyof typeof ELEMENTS {
  return Object.hasOwn(ELEMENTS, name);
}

function linkNode(href: string, children: readonly MarkdownNode[]): MarkdownNode {
  if (!ALLOWED_SCHEME.test(href)) return { type: 'group', children };
  return { type: 'link', href, children: children.length === 0 ? [{ type: 'text', text: href }] : children };
}

function alignmentOf(token: Token): Alignment | null {
  const [, align] = /^text-align:(left|center|right)$/.exec(String(token.attrGet('style') ?? '')) ?? [];
  return align === undefined ? null : (align as Alignment);
}

function leafNodes(token: Token, levels: HeadingLevels): MarkdownNode[] {
  switch (token.type) {
    case 'inline':
      return treeOf(token.children ?? [], levels);
    // Unlike in CommonMark, a single line break is rendered. Models write verses and items on separate lines.
    case 'softbreak':
    case 'hardbreak':
      return [{ type: 'break' }];
    case 'hr':
      return [{ type: 'rule' }];
    case 'code_inline':
      return [{ type: 'code', text: token.content }];
    case 'fence':
    case 'code_block': {
      const [language = ''] = token.info.trim().split(/\s/);
      return [{ type: 'code-block', language: language.slice(0, MAX_LANGUAGE), text: token.content.replace(/\n$/, '') }];
    }
    // Loading an image would reveal the reader's IP address to the server of the image.
    case 'image':
      return [{ type: 'text', text: token.content === '' ? '[Image]' : `[Image: ${token.content}]` }];
    default:
      return token.content === '' ? [] : [{ type: 'text', text: token.content }];
  }
}
