/**
 * `LogRepository`: stores the transparency log, a public append-only list of entries under a Merkle tree (RFC 6962).
 *
 * A lock on the row in `log_heads` serialises appends.
 */
import {
  encodeLogEntry,
  fromHex,
  fromUtf8,
  type LogEntry,
  type LogEntryKind,
  leafHash,
  nodeHash,
  type Sha256,
  toHex,
  treeRoot,
  utf8,
} from '@inference/protocol';
import { databaseTime } from './connection/database-clock.js';
import { locked } from './connection/row-lock.js';
import { withRetries } from './connection/transaction-retry.js';
import type { Database } from './tables.js';

/** Name of the log's row in `log_heads`. */
export const LOG_NAME = 'e2e';
const HOUR_MS = 3_600_000;
/** Maximum time for the retries of one append. */
const APPEND_MS = 10_000;

/** Maximum new entries per hour and kind, so that a fault or an attack cannot grow the append-only log without bound. */
export const MAX_ENTRIES_PER_HOUR: Readonly<Record<LogEntryKind, number>> = { keyset: 1000, provider: 5000, revoked: 1000, release: 120 };

export interface PublishedTree {
  /** Name of the log, as in its checkpoints (C2SP tlog-checkpoint). */
  readonly origin: string;
  readonly size: number;
  /** 32 bytes. */
  readonly root: Uint8Array;
  /** Signature lines of witnesses for this tree. */
  readonly cosignatures: string;
  /** Time of the query by the database's clock, in milliseconds since 1970. */
  readonly readAt: number;
}

export class LogRepository {
  readonly #database: Database;
  readonly #sha256: Sha256;

  private constructor(database: Database, sha256: Sha256) {
    this.#database = database;
    this.#sha256 = sha256;
  }

  /** Opens the log, or creates an empty one with `origin`. The origin of an existing log stays. */
  static async open(database: Database, sha256: Sha256, origin: string): Promise<LogRepository> {
    await database
      .insertInto('log_heads')
      .values({ name: LOG_NAME, origin, size: 0, published_size: 0, published_root: toHex(sha256(new Uint8Array())), cosignatures: '' })
      .onConflict((conflict) => conflict.column('name').doNothing())
      .execute();
    return new LogRepository(database, sha256);
  }

  /** Appends an entry unless an equal one exists. Resolves to its index; null: the hourly maximum of its kind is reached. */
  async append(entry: LogEntry): Promise<number | null> {
    const bytes = encodeLogEntry(entry);
    const hash = leafHash(this.#sha256, bytes);
    const write = (transaction: Database) => this.#append(transaction, entry.kind, bytes, hash);
    return (
      (await indexOf(this.#database, hash)) ??
      (await withRetries(() => this.#database.transaction().execute(write), Date.now() + APPEND_MS))
    );
  }

  async #append(transaction: Database, kind: LogEntryKind, bytes: Uint8Array, hash: Uint8Array): Promise<number | null> {
    const head = transaction.selectFrom('log_heads').select('size').where('name', '=', LOG_NAME);
    const { size } = await locked(transaction, head, 'update').executeTakeFirstOrThrow();
    const existing = await indexOf(transaction, hash);
    if (existing !== null) return existing;
    const now = databaseTime(transaction);
    const recent = await transaction
      .selectFrom('log_entries')
      .select(({ fn }) => fn.countAll<number | string>().as('count'))
      .where('kind', '=', kind)
      .where('created_at', '>', ({ eb }) => eb(now, '-', HOUR_MS))
      .executeTakeFirstOrThrow();
    if (Number(recent.count) >= MAX_ENTRIES_PER_HOUR[kind]) return null;
    await transaction
      .insertInto('log_entries')
      .values({ leaf_index: size, leaf_hash: toHex(hash), kind, entry: fromUtf8(bytes), created_at: now })
      .execute();
    await transaction
      .insertInto('log_nodes')
      .values(await this.#completedSubtrees(transaction, size, hash))
      .execute();
    await transaction
      .updateTable('log_heads')
      .set({ size: size + 1 })
      .where('name', '=', LOG_NAME)
      .execute();
    return size;
  }

  /** Rows of `log_nodes` for a new leaf: the leaf itself, and the subtrees that it completes. */
  async #completedSubtrees(transaction: Database, index: number, leaf: Uint8Array) {
    const rows = [{ level: 0, node_index: index, hash: toHex(leaf) }];
    let hash = leaf;
    for (let [level, node] = [0, index]; node % 2 === 1; ) {
      hash = nodeHash(this.#sha256, await readNode(transaction, level, node - 1), hash);
      [level, node] = [level + 1, (node - 1) / 2];
      rows.push({ level, node_index: node, hash: toHex(hash) });
    }
    return rows;
  }

  /** Number of leaves, published or not. */
  async size(): Promise<number> {
    const head = await this.#database.selectFrom('log_heads').select('size').where('name', '=', LOG_NAME).executeTakeFirstOrThrow();
    return head.size;
  }

  async published(): Promise<PublishedTree> {
    const head = await this.#database
      .selectFrom('log_heads')
      .select(['origin', 'published_size', 'published_root', 'cosignatures', databaseTime(this.#database).as('read_at')])
      .where('name', '=', LOG_NAME)
      .executeTakeFirstOrThrow();
    const { origin, published_size: size, published_root: root, cosignatures, read_at: readAt } = head;
    return { origin, size, root: fromHex(root), cosignatures, readAt: Number(readAt) };
  }

  /** Sets the published tree, unless a larger tree is published already. */
  async publish({ size, root, cosignatures }: Pick<PublishedTree, 'size' | 'root' | 'cosignatures'>): Promise<void> {
    await this.#database
      .updateTable('log_heads')
      .set({ published_size: size, published_root: toHex(root), cosignatures })
      .where('name', '=', LOG_NAME)
      .where('published_size', '<=', size)
      .execute();
  }

  /** Hash of the complete subtree over 2^level leaves. Rejects if it is not complete. */
  readonly subtree = (level: number, index: number): Promise<Uint8Array> => readNode(this.#database, level, index);

  /** Hashes of `count` neighbouring subtrees from `first` on. */
  async subtrees(level: number, first: number, count: number): Promise<Uint8Array[]> {
    const rows = await this.#database
      .selectFrom('log_nodes')
      .select('hash')
      .where('level', '=', level)
      .where('node_index', '>=', first)
      .where('node_index', '<', first + count)
      .orderBy('node_index')
      .execute();
    return rows.map(({ hash }) => fromHex(hash));
  }

  async entries(first: number, count: number): Promise<Uint8Array[]> {
    const rows = await this.#database
      .selectFrom('log_entries')
      .select('entry')
      .where('leaf_index', '>=', first)
      .where('leaf_index', '<', first + count)
      .orderBy('leaf_index')
      .execute();
    return rows.map(({ entry }) => utf8(entry));
  }
}

/** Root of the first `size` leaves of the published tree, from the stored nodes. Null: the log is missing or has published fewer. */
export async function publishedRoot(database: Database, sha256: Sha256, size: number): Promise<Uint8Array | null> {
  const head = await database.selectFrom('log_heads').select('published_size').where('name', '=', LOG_NAME).executeTakeFirst();
  if (head === undefined || size > head.published_size) return null;
  return treeRoot(sha256, (level, index) => readNode(database, level, index), size);
}

async function indexOf(database: Database, hash: Uint8Array): Promise<number | null> {
  const row = await database.selectFrom('log_entries').select('leaf_index').where('leaf_hash', '=', toHex(hash)).executeTakeFirst();
  return row?.leaf_index ?? null;
}

async function readNode(database: Database, level: number, index: number): Promise<Uint8Array> {
  const query = database.selectFrom('log_nodes').select('hash').where('level', '=', level).where('node_index', '=', index);
  return fromHex((await query.executeTakeFirstOrThrow()).hash);
}
