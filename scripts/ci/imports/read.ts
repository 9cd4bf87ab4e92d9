/** Finds the TypeScript sources of the repository and their imports. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync } from 'oxc-parser';

const SOURCE_ROOTS = ['packages', 'apps'];

/** Paths of the TypeScript sources (`src`) of all packages and apps below `root`. */
export function sourceFiles(root: string): string[] {
  const folders = SOURCE_ROOTS.flatMap((top) => readdirSync(join(root, top)).map((name) => join(root, top, name, 'src')));
  return folders
    .flatMap((folder) => readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path)))
    .filter((path) => /\.tsx?$/.test(path))
    .sort();
}

/** An imported module. If `typesOnly`, none of its imports exists at run time. */
export interface Import {
  readonly specifier: string;
  readonly typesOnly: boolean;
}

/** All imports and re-exports of a module: static, type-only, and dynamic with a literal. */
export function findImports(path: string, text: string): Import[] {
  const { module, errors } = parseSync(path, text);
  const [error] = errors;
  if (error !== undefined) throw new Error(`${path}: ${error.message}`);
  const found = new Map<string, boolean>();
  const add = (specifier: string, typesOnly: boolean): void => void found.set(specifier, (found.get(specifier) ?? true) && typesOnly);
  for (const { moduleRequest, entries } of module.staticImports) {
    add(moduleRequest.value, entries.length > 0 && entries.every((entry) => entry.isType));
  }
  for (const statement of module.staticExports) {
    for (const entry of statement.entries) if (entry.moduleRequest !== null) add(entry.moduleRequest.value, entry.isType);
  }
  for (const { moduleRequest } of module.dynamicImports) {
    const literal = /^['"](.*)['"]$/.exec(text.slice(moduleRequest.start, moduleRequest.end));
    if (literal?.[1] !== undefined) add(literal[1], false);
  }
  return [...found].map(([specifier, typesOnly]) => ({ specifier, typesOnly }));
}
