import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const SOURCES = fileURLToPath(new URL('../src', import.meta.url));

/** Sheet that imports the sheets of UI components. They are always loaded together, in the order of its imports. */
const ENTRY = 'styles/ui.css';
const IMPORTED = new Set(
  [...readFileSync(join(SOURCES, ENTRY), 'utf8').matchAll(/^@import "\.\.\/(.+)";$/gm)].map(([, path = '']) => path),
);

it('no class is styled by two style sheets, because one page would affect another opened before', () => {
  const sheetsOf = new Map<string, Set<string>>();
  for (const sheet of readdirSync(SOURCES, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.css'))) {
    // Matches only rules that start with a class. Inside its own rules, a sheet may style classes of another sheet.
    for (const [, name = ''] of readFileSync(join(SOURCES, sheet), 'utf8').matchAll(/^\s*\.([a-z][a-z0-9-]*)/gm)) {
      sheetsOf.set(name, (sheetsOf.get(name) ?? new Set()).add(IMPORTED.has(sheet) ? ENTRY : sheet));
    }
  }
  expect(IMPORTED.size).toBeGreaterThan(5);
  expect(sheetsOf.size).toBeGreaterThan(100);
  expect([...sheetsOf].filter(([, sheets]) => sheets.size > 1)).toEqual([]);
});
