/** Finds the TypeScript sources of the repository and their imports. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync } from 'oxc-parser';

const SOURCE_ROOTS = ['packages', 'apps'];

/** Absolute paths of every TypeScript source of packages and apps (not tests, not builds). */
export function sourceFiles(root: string): string[] {
  const files: string[] = [];
  for (const top of SOURCE_ROOTS) {
    for (const name of readdirSync(join(root, top))) collect(join(root, top, name, 'src'), files);
  }
  return files.sort();
}

function collect(directory: string, files: string[]): void {
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) collect(path, files);
    else if (/\.tsx?$/.test(entry.name)) files.push(path);
  }
}

/** An imported module. `typesOnly`: the compiler erases every import of the module. */
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
