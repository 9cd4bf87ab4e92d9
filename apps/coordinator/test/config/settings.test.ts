/** Compares the settings that the coordinator reads with the operators' guides. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { readConfig } from '../../src/config/config.js';

const DOCS = fileURLToPath(new URL('../../../../docs/', import.meta.url));

it("are all in the operators' guides", () => {
  const read = new Set<string>();
  // METRICS_HOST is read only if METRICS_PORT is set.
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

it('read the operator of receipts, whose address has lines', () => {
  const operator = {
    OPERATOR_NAME: 'Example Networks GmbH',
    OPERATOR_ADDRESS: 'Hauptstraße 1\\n10115 Berlin',
    OPERATOR_TAX_ID: 'DE123456789',
  };
  expect(readConfig(operator).operator).toEqual({
    name: 'Example Networks GmbH',
    address: 'Hauptstraße 1\n10115 Berlin',
    taxId: 'DE123456789',
  });
  expect(readConfig({}).operator).toEqual({ name: null, address: null, taxId: null });
  expect(() => readConfig({ OPERATOR_NAME: 'n'.repeat(201) })).toThrow(/OPERATOR_NAME must be one line/);
  expect(() => readConfig({ OPERATOR_ADDRESS: 'a\n'.repeat(9) })).toThrow(
    /OPERATOR_ADDRESS must be at most 500 characters in at most 8 lines/,
  );
  expect(() => readConfig({ OPERATOR_TAX_ID: 'a\tb' })).toThrow(/OPERATOR_TAX_ID must be one line/);
});
