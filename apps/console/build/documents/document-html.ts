/**
 * Writes an HTML file per document, based on `index.html`. Readers see the text before the console's script has arrived, and without
 * JavaScript. The file of `/docs/clients` is `docs/clients.html`.
 */
import type { Element, Root } from 'hast';
import { toHtml } from 'hast-util-to-html';
import { toString as textOf } from 'hast-util-to-string';
import type { Plugin, Rolldown } from 'vite';
import { documentPaths, pathOfPage } from './files.js';
import { FILE_SCHEME, type RenderedDocument, renderedDocument } from './render.js';

/** Common length of a description in search results, in characters. */
const MAX_DESCRIPTION = 160;

export function documentHtml(): Plugin {
  return {
    name: 'document-html',
    apply: 'build',
    generateBundle: {
      // After Vite has written `index.html`.
      order: 'post',
      handler(_options, bundle) {
        const index = bundle['index.html'];
        if (index?.type !== 'asset') throw new Error('the build has no index.html');
        for (const path of documentPaths()) {
          const page = pathOfPage(path);
          if (page === null) throw new Error(`${path} has no page`);
          const source = htmlOf(String(index.source), renderedDocument(path), filesOf(bundle, path));
          this.emitFile({ type: 'asset', fileName: `${page.slice(1)}.html`, source });
        }
      },
    },
  };
}

interface DocumentFiles {
  readonly styleSheets: readonly string[];
  readonly modules: readonly string[];
  /** URL of a file that the document links, by path in the repository. */
  urlOf(file: string): string;
}

/** `index` with the document in place of the loading text. Throws if a part of `index` is missing. */
export function htmlOf(index: string, { title, tree }: RenderedDocument, files: DocumentFiles): string {
  const text = toHtml(withFileUrls(tree, files));
  const styleSheets = files.styleSheets.map((file) => `<link rel="stylesheet" crossorigin href="/${file}">\n    `);
  const modules = files.modules.map((file) => `  <link rel="modulepreload" crossorigin href="/${file}">\n  `);
  const parts: readonly (readonly [RegExp, string])[] = [
    [/<title>[^<]*<\/title>/, `<title>${escaped(title)} · Inference network</title>`],
    [/<meta name="description" content="[^"]*"/, `<meta name="description" content="${escaped(descriptionOf(tree))}"`],
    [/(?=<script)/, styleSheets.join('')],
    [/(?=<\/head>)/, modules.join('')],
    [/<div class="boot">[\s\S]*<\/div>(?=\s*<\/div>\s*<noscript>)/, documentElement(title, text)],
    [/<\/div>\s*<noscript>This console[^<]*<\/noscript>/, '</div>'],
  ];
  return parts.reduce((html, [pattern, replacement]) => {
    if (!pattern.test(html)) throw new Error(`index.html has no ${pattern}`);
    return html.replace(pattern, () => replacement);
  }, index);
}

function documentElement(title: string, text: string): string {
  return `<div class="boot-document" data-prerendered>
        <main class="shell-main">
          <nav class="document-path"><a href="/">Inference network</a> · <a href="/docs">Documentation</a></nav>
          <div class="page-header"><h1>${escaped(title)}</h1></div>
          <article class="document">${text}</article>
          <noscript><p class="muted">The search and the other pages of the console need JavaScript.</p></noscript>
        </main>
      </div>`;
}

/** Files of the console that show the document: style sheet and modules, which browsers load beside the console's script. */
function filesOf(bundle: Rolldown.OutputBundle, path: string): DocumentFiles {
  const chunks = Object.values(bundle).filter((file) => file.type === 'chunk');
  const page = chunks.find(({ facadeModuleId }) => facadeModuleId?.endsWith('/pages/docs/document-page.tsx'));
  const content = chunks.find(({ facadeModuleId }) => facadeModuleId?.endsWith(`virtual:documents/document/${path}`));
  if (page === undefined || content === undefined) throw new Error(`the build has no modules of ${path}`);
  return {
    styleSheets: [...(page.viteMetadata?.importedCss ?? [])],
    modules: [page.fileName, content.fileName],
    urlOf(file) {
      const asset = Object.values(bundle).find((one) => one.type === 'asset' && one.originalFileNames.some((name) => name.endsWith(file)));
      if (asset === undefined) throw new Error(`the build has no file ${file}`);
      return `/${asset.fileName}`;
    },
  };
}

function withFileUrls(tree: Root, files: DocumentFiles): Root {
  const copy = structuredClone(tree);
  const visit = (parent: Root | Element): void => {
    for (const node of parent.children) {
      if (node.type !== 'element') continue;
      const { href } = node.properties;
      if (typeof href === 'string' && href.startsWith(FILE_SCHEME)) node.properties.href = files.urlOf(href.slice(FILE_SCHEME.length));
      visit(node);
    }
  };
  visit(copy);
  return copy;
}

/** First paragraph, cut between words to `MAX_DESCRIPTION`. */
function descriptionOf(tree: Root): string {
  const paragraph = tree.children.find((node) => node.type === 'element' && node.tagName === 'p');
  const text = paragraph?.type === 'element' ? textOf(paragraph).replaceAll(/\s+/g, ' ').trim() : '';
  return text.length <= MAX_DESCRIPTION ? text : `${text.slice(0, MAX_DESCRIPTION - 1).replace(/\s+\S*$/, '')}…`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
