/** `npm run stored-data`: writes the inventory of stored personal data into docs/data-protection.md. */
import { readFileSync, writeFileSync } from 'node:fs';
import { withStoredData } from '../apps/coordinator/test/support/stored-data-document.js';

const FILE = new URL('../docs/data-protection.md', import.meta.url);

writeFileSync(FILE, withStoredData(readFileSync(FILE, 'utf8')));
