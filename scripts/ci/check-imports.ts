/**
 * Checks the import directions of the repository (docs/architecture.md) against imports/rules.ts, type-only imports included. Exits
 * 1 and lists each violation.
 */
import { readFileSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findImports, sourceFiles } from './imports/read.js';
import { checkImport, type Layer, layerOf } from './imports/rules.js';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const problems: string[] = [];
const seen = new Map<Layer['name'], number>();

for (const file of sourceFiles(root)) {
  const path = relative(root, file);
  const layer = layerOf(path);
  if (layer === null) {
    problems.push(`${path}: lies in no layer of scripts/ci/imports/rules.ts`);
    continue;
  }
  seen.set(layer.name, (seen.get(layer.name) ?? 0) + 1);
  for (const found of findImports(path, readFileSync(file, 'utf8'))) {
    const problem = checkImport(layer, path, found);
    if (problem !== null) problems.push(`${path}: imports ${found.specifier}, but ${problem}`);
  }
}

for (const problem of problems) console.error(problem);
const total = [...seen.values()].reduce((sum, count) => sum + count, 0);
console.log(`import directions: ${total} files in ${seen.size} layers, ${problems.length} problems`);
process.exit(problems.length === 0 && total > 0 ? 0 : 1);
