/** `STORED_DATA`: the inventory of all tables. Erasures run in reverse: conditions read `auth_users`, which comes first. */
import { ACCOUNT_DATA } from './account-data.js';
import { MACHINE_DATA } from './machine-data.js';
import { MONEY_DATA } from './money-data.js';
import { NETWORK_DATA } from './network-data.js';
import type { StoredTable } from './stored-table.js';

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
