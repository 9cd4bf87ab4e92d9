/**
 * Renders a Markdown document to a sanitised HTML tree (hast), and to sections for search. Links point to pages of the console. Raw
 * HTML is dropped.
 */
import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import type { Element, ElementContent, Root } from 'hast';
import { toString as textOf } from 'hast-util-to-string';
import rehypeSanitize, { defaultSchema } from 'rehype-sanitize';
import rehypeSlug from 'rehype-slug';
import remarkGfm from 'remark-gfm';
import remarkParse from 'remark-parse';
import remarkRehype from 'remark-rehype';
import { unified } from 'unified';
import { pathOfPage, REPOSITORY } from './files.js';

export interface RenderedDocument {
  readonly title: string;
  /** Content without the first heading, which is the title. */
  readonly tree: Root;
  /** Headings of the second level. */
  readonly contents: readonly { readonly id: string; readonly title: string }[];
  readonly sections: readonly Section[];
  /** Files beside the documents that are linked, by path in the repository. */
  readonly files: readonly string[];
}

interface Section {
  /** Anchor of the heading; empty before the first one. */
  readonly id: string;
  readonly title: string;
  readonly text: string;
}

/** Scheme of links to files, which have an address only after the build. */
export const FILE_SCHEME = 'file:';

const processor = unified().use(remarkParse).use(remarkGfm).use(remarkRehype).use(rehypeSanitize, defaultSchema).use(rehypeSlug);

const rendered = new Map<string, { readonly markdown: string; readonly document: RenderedDocument }>();

/** Renders a document of the repository, once until its file changes. */
export function renderedDocument(path: string): RenderedDocument {
  const markdown = readFileSync(join(REPOSITORY, path), 'utf8');
  const known = rendered.get(path);
  if (known?.markdown === markdown) return known.document;
  const document = renderDocument(path, markdown, pathOfPage);
  rendered.set(path, { markdown, document });
  return document;
}

/**
 * `path`: path in the repository, from which relative links start. `pathOfPage` returns the console's path of a document, or null.
 * Links to other files of the repository become text.
 */
export function renderDocument(path: string, markdown: string, pathOfPage: (path: string) => string | null): RenderedDocument {
  const tree = processor.runSync(processor.parse(markdown));
  const first = tree.children.findIndex((node) => node.type === 'element' && node.tagName === 'h1');
  const heading = tree.children[first];
  if (heading?.type !== 'element') throw new Error(`${path} has no heading of the first level`);
  const files = new Set<string>();
  tree.children.splice(first, 1);
  rewriteLinks(tree, path, pathOfPage, files);
  const title = textOf(heading);
  const sections = sectionsOf(tree, title);
  return { title, tree, sections, contents: headings(tree, 'h2'), files: [...files] };
}

function rewriteLinks(parent: Root | Element, path: string, pathOfPage: (path: string) => string | null, files: Set<string>): void {
  for (const node of parent.children) {
    if (node.type !== 'element') continue;
    rewriteLinks(node, path, pathOfPage, files);
    const href = node.properties.href;
    if (node.tagName !== 'a' || typeof href !== 'string' || /^(?:[a-z]+:|#)/i.test(href)) continue;
    const [file = '', anchor] = href.split('#');
    const target = posix.join(posix.dirname(path), file);
    const page = pathOfPage(target);
    if (page !== null) {
      node.properties.href = anchor === undefined ? page : `${page}#${anchor}`;
    } else if (/^docs\/.*\.json$/.test(target)) {
      files.add(target);
      node.properties.href = FILE_SCHEME + target;
    } else {
      node.tagName = 'span';
      node.properties = { title: target };
    }
  }
}

function headings(tree: Root, tagName: string): { id: string; title: string }[] {
  return tree.children.flatMap((node) =>
    node.type === 'element' && node.tagName === tagName ? [{ id: String(node.properties.id), title: textOf(node) }] : [],
  );
}

/** Text of each heading up to the next one. */
function sectionsOf(tree: Root, title: string): Section[] {
  const sections: { id: string; title: string; texts: string[] }[] = [{ id: '', title, texts: [] }];
  for (const node of tree.children) {
    if (node.type !== 'element') continue;
    if (/^h[2-4]$/.test(node.tagName)) sections.push({ id: String(node.properties.id), title: textOf(node), texts: [] });
    else sections.at(-1)?.texts.push(spacedText(node));
  }
  return sections.map(({ texts, ...section }) => ({ ...section, text: texts.join(' ').replaceAll(/\s+/g, ' ').trim() }));
}

/** Text in which neighbouring blocks, such as cells of a table, do not run together. */
function spacedText(node: ElementContent): string {
  if (node.type === 'text') return node.value;
  if (node.type !== 'element') return '';
  const text = node.children.map(spacedText).join('');
  return /^(?:p|li|td|th|tr|pre|h\d)$/.test(node.tagName) ? ` ${text} ` : text;
}
