/** `sharedSecret`: random secrets that all coordinators of a database share. The first call for a name creates the secret. */
import { randomBytes } from 'node:crypto';
import type { Database } from './tables.js';

const SECRET_BYTES = 32;

/** The 32-byte secret of a name. `initial`: value of a new secret; random by default. */
export async function sharedSecret(database: Database, name: string, initial?: Uint8Array): Promise<Uint8Array> {
  if (initial !== undefined && initial.length !== SECRET_BYTES) throw new RangeError(`a secret has ${SECRET_BYTES} bytes`);
  const stored = await readSecret(database, name);
  if (stored !== null) return stored;
  await database
    .insertInto('secrets')
    .values({ name, value: Buffer.from(initial ?? randomBytes(SECRET_BYTES)).toString('hex') })
    .onConflict((conflict) => conflict.column('name').doNothing())
    .execute();
  // Read again, so that concurrent creators all get the row that was stored first.
  const created = await readSecret(database, name);
  if (created === null) throw new Error('a new secret is missing');
  return created;
}

async function readSecret(database: Database, name: string): Promise<Uint8Array | null> {
  const row = await database.selectFrom('secrets').select('value').where('name', '=', name).executeTakeFirst();
  return row === undefined ? null : Buffer.from(row.value, 'hex');
}
