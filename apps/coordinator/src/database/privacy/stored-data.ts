/** `STORED_DATA`: the data inventory, with an entry per database table. `auth_users` must be first, so that `eraseAccount` erases it last. */
import { ACCOUNT_DATA } from './account-data.js';
import { MACHINE_DATA } from './machine-data.js';
import { MONEY_DATA } from './money-data.js';
import { NETWORK_DATA } from './network-data.js';
import type { StoredTable } from './stored-table.js';

/** Section of the inventory in docs/data-protection.md. */
export interface StoredArea {
  readonly title: string;
  readonly tables: Readonly<Record<string, StoredTable>>;
}

export const STORED_AREAS: readonly StoredArea[] = [
  { title: 'People, organisations and keys', tables: ACCOUNT_DATA },
  { title: 'Usage and money', tables: MONEY_DATA },
  { title: 'Machines', tables: MACHINE_DATA },
  { title: 'The network itself', tables: NETWORK_DATA },
];

export const STORED_DATA: ReadonlyMap<string, StoredTable> = new Map(STORED_AREAS.flatMap(({ tables }) => Object.entries(tables)));
