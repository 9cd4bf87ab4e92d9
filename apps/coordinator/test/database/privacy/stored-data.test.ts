/** The inventory of stored data names every table and column of the real schema, and the document shows the inventory. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { RETENTION_DEFAULTS } from '../../../src/config/retention.js';
import { STORED_AREAS, STORED_DATA } from '../../../src/database/privacy/stored-data.js';
import { COLUMN_KINDS, columnsOf } from '../../../src/database/privacy/stored-table.js';
import { describeDatabases } from '../../support/databases.js';
import { withStoredData } from '../../support/stored-data-document.js';

const read = (name: string): string => readFileSync(join(import.meta.dirname, '../../../../../docs', name), 'utf8');

describeDatabases('the inventory of stored data', (fresh) => {
  it('has every table and column of the schema exactly once, and no other', async () => {
    const place = await fresh();
    const database = await place.open();
    const tables = await database.introspection.getTables({ withInternalKyselyTables: true });
    await database.destroy();
    await place.remove();
    const real = Object.fromEntries(tables.map(({ name, columns }) => [name, columns.map((column) => column.name).sort()]));
    const described = Object.fromEntries(
      [...STORED_DATA].map(([name, table]) => [name, COLUMN_KINDS.flatMap((kind) => columnsOf(table, kind)).sort()]),
    );
    expect(described).toEqual(real);
    expect(STORED_AREAS.reduce((count, area) => count + Object.keys(area.tables).length, 0)).toBe(STORED_DATA.size);
  });
});

it('is the table in the document; `npm run stored-data` writes it', () => {
  const document = read('data-protection.md');
  expect(document).toBe(withStoredData(document));
});

it('documents every retention setting with its default', () => {
  const operating = read('operating.md');
  for (const [name, days] of Object.entries(RETENTION_DEFAULTS)) {
    expect(operating).toContain(`| \`${name}\` | ${days} |`);
    expect(read('data-protection.md')).toContain(name);
  }
});
