/**
 * `KeysetRepository`: keysets, the published lists of providers' sealing keys, to which clients encrypt requests end to end.
 *
 * Each keyset has a growing number, its epoch. A coordinator first stores the content of the next epoch as its claim. The first claim wins,
 * so that all coordinators publish the same bytes.
 */
import type { Database } from './tables.js';

export interface StoredKeyset {
  readonly epoch: number;
  /** JSON of the keyset. Published: as served. Claimed: without the member `log`. */
  readonly body: string;
  /** Milliseconds since 1970. */
  readonly issuedAt: number;
}

/** Number of stored keysets. Only the newest is served. */
const RETAINED_KEYSETS = 2;
const RETAINED_CLAIMS = 16;

export class KeysetRepository {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** The published keyset with the largest epoch; null: none. */
  newest(): Promise<StoredKeyset | null> {
    return newestOf(this.#database, 'e2e_keysets');
  }

  /** The claim with the largest epoch, published or not; null: none. */
  newestClaim(): Promise<StoredKeyset | null> {
    return newestOf(this.#database, 'e2e_keyset_claims');
  }

  /** Claims an epoch. Resolves to the winning claim, possibly another coordinator's; null: this or a later epoch is published. */
  async claim({ epoch, body, issuedAt }: StoredKeyset): Promise<StoredKeyset | null> {
    await this.#database
      .insertInto('e2e_keyset_claims')
      .values({ epoch, body, issued_at: issuedAt })
      .onConflict((conflict) => conflict.column('epoch').doNothing())
      .execute();
    // Checked after the insert, because the claim of a published epoch may have been deleted, so that the insert succeeded again.
    const newest = await this.newest();
    if (newest !== null && newest.epoch >= epoch) return null;
    const row = await this.#database.selectFrom('e2e_keyset_claims').selectAll().where('epoch', '=', epoch).executeTakeFirst();
    return row === undefined ? null : storedKeyset(row);
  }

  /** Publishes a keyset. False: another coordinator has published this epoch. */
  async publish({ epoch, body, issuedAt }: StoredKeyset): Promise<boolean> {
    const { numInsertedOrUpdatedRows } = await this.#database
      .insertInto('e2e_keysets')
      .values({ epoch, body, issued_at: issuedAt })
      .onConflict((conflict) => conflict.column('epoch').doNothing())
      .executeTakeFirstOrThrow();
    if (numInsertedOrUpdatedRows !== 1n) return false;
    await this.#database
      .deleteFrom('e2e_keysets')
      .where('epoch', '<=', epoch - RETAINED_KEYSETS)
      .execute();
    await this.#database
      .deleteFrom('e2e_keyset_claims')
      .where('epoch', '<=', epoch - RETAINED_CLAIMS)
      .execute();
    return true;
  }
}

async function newestOf(database: Database, table: 'e2e_keysets' | 'e2e_keyset_claims'): Promise<StoredKeyset | null> {
  const row = await database.selectFrom(table).selectAll().orderBy('epoch', 'desc').limit(1).executeTakeFirst();
  return row === undefined ? null : storedKeyset(row);
}

function storedKeyset({ epoch, body, issued_at }: { epoch: number; body: string; issued_at: number }): StoredKeyset {
  return { epoch: Number(epoch), body, issuedAt: Number(issued_at) };
}
