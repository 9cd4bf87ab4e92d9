/** Finds the TypeScript sources of the repository and the modules that each of them imports. */
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

/** Specifiers of all imports and re-exports of a module: static, type-only, and dynamic ones with a literal. */
export function findImports(path: string, text: string): string[] {
  const { module, errors } = parseSync(path, text);
  const [error] = errors;
  if (error !== undefined) throw new Error(`${path}: ${error.message}`);
  const specifiers = module.staticImports.map((statement) => statement.moduleRequest.value);
  for (const statement of module.staticExports) {
    for (const entry of statement.entries) if (entry.moduleRequest !== null) specifiers.push(entry.moduleRequest.value);
  }
  for (const { moduleRequest } of module.dynamicImports) {
    const literal = /^['"](.*)['"]$/.exec(text.slice(moduleRequest.start, moduleRequest.end));
    if (literal?.[1] !== undefined) specifiers.push(literal[1]);
  }
  return [...new Set(specifiers)];
}
