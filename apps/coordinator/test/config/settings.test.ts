/** Settings of the coordinator against their documentation for operators. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { readConfig } from '../../src/config/config.js';

const DOCS = fileURLToPath(new URL('../../../../docs/', import.meta.url));

it("are all in the operators' guides", () => {
  const read = new Set<string>();
  // Some settings are read only with others.
  const given: Readonly<Record<string, string>> = { METRICS_PORT: '0' };
  const environment = new Proxy(given, {
    get(target, name) {
      read.add(String(name));
      return Reflect.get(target, name);
    },
  });
  readConfig(environment);
  const guides = readdirSync(DOCS)
    .filter((name) => name.endsWith('.md'))
    .map((name) => readFileSync(DOCS + name, 'utf8'))
    .join('\n');
  expect(read.size).toBeGreaterThan(30);
  expect([...read].filter((name) => !new RegExp(`\\b${name}\\b`).test(guides))).toEqual([]);
});
