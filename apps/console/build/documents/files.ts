/** Documents of the repository and their pages in the console. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const REPOSITORY = fileURLToPath(new URL('../../../../', import.meta.url));

/** Documents outside `docs`. */
const OTHERS: Readonly<Record<string, string>> = { 'CONTRIBUTING.md': '/docs/contributing' };

/** Paths in the repository, sorted. */
export function documentPaths(): readonly string[] {
  const inDocs = readdirSync(join(REPOSITORY, 'docs'), { recursive: true, encoding: 'utf8' }).map((path) =>
    join('docs', path).replaceAll('\\', '/'),
  );
  return [...inDocs.filter((path) => path.endsWith('.md')), ...Object.keys(OTHERS)].sort();
}

/** Path of a document's page: `docs/clients.md` is `/docs/clients`, a `README.md` its folder. Null for other files. */
export function pathOfPage(path: string): string | null {
  const other = OTHERS[path];
  if (other !== undefined) return other;
  const folder = path.replace(/(?:\/README\.md|\/)$/, '');
  if (folder === 'docs' || folder === 'docs/decisions') return `/${folder}`;
  const [, name] = /^(docs\/(?:decisions\/)?[\w-]+)\.md$/.exec(path) ?? [];
  return name === undefined ? null : `/${name}`;
}
