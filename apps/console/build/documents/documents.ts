/**
 * Turns the Markdown of `docs` into modules: `virtual:documents` loads a document by its path in the console, and
 * `virtual:documents/search` holds the text of all sections.
 */
import { join } from 'node:path';
import type { Plugin } from 'vite';
import { documentPaths, pathOfPage, REPOSITORY } from './files.js';
import { type RenderedDocument, renderedDocument } from './render.js';

const INDEX = 'virtual:documents';
const SEARCH = `${INDEX}/search`;
const DOCUMENT = `${INDEX}/document/`;

export function documents(): Plugin {
  return {
    name: 'documents',
    resolveId: (id) => (id === INDEX || id === SEARCH || id.startsWith(DOCUMENT) ? `\0${id}` : null),
    load(id) {
      if (!id.startsWith(`\0${INDEX}`)) return null;
      for (const path of documentPaths()) this.addWatchFile(join(REPOSITORY, path));
      if (id === `\0${INDEX}`) return indexModule();
      if (id === `\0${SEARCH}`) return searchModule();
      return documentModule(renderedDocument(id.slice(`\0${DOCUMENT}`.length)));
    },
  };
}

function indexModule(): string {
  const loaders = documentPaths().map((path) => `${JSON.stringify(pathOfPage(path))}: () => import(${JSON.stringify(DOCUMENT + path)}),`);
  return `export const DOCUMENTS = {\n${loaders.join('\n')}\n};\n`;
}

function documentModule({ title, tree, contents, files }: RenderedDocument): string {
  const imports = files.map((file, index) => `import file${index} from ${JSON.stringify(`${join(REPOSITORY, file)}?url`)};\n`);
  const urls = files.map((file, index) => `${JSON.stringify(file)}: file${index}`);
  // Positions in the Markdown are for messages of the parser only.
  const json = JSON.stringify({ title, tree, contents }, (key, value) => (key === 'position' ? undefined : value));
  return `${imports.join('')}export const document = { ...${json}, fileUrls: { ${urls.join(', ')} } };\n`;
}

function searchModule(): string {
  const entries = documentPaths().flatMap((path) => {
    const { title, sections } = renderedDocument(path);
    const page = pathOfPage(path);
    return sections
      .filter(({ id, text }) => id !== '' || text !== '')
      .map(({ id, title: heading, text }) => ({ href: id === '' ? page : `${page}#${id}`, document: title, title: heading, text }));
  });
  return `export const SECTIONS = ${JSON.stringify(entries)};\n`;
}
