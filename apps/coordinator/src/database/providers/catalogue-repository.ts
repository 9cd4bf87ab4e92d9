/** `CatalogueRepository`: the catalogue, the operator's list of models. Cached in memory, and read again every ten seconds. */
import type { ModelType } from '@inference/protocol';
import { PeriodicRefresh } from '../periodic-refresh.js';
import type { Database } from '../tables.js';

export interface CatalogueEntry {
  readonly id: string;
  readonly displayName: string;
  readonly quantization: string;
  readonly modelType: ModelType;
  /** Null: unknown. */
  readonly minMemoryBytes: number | null;
  /** SHA-256 of the allowed model files, hexadecimal and sorted. Empty: any file may be served. */
  readonly fileSha256: readonly string[];
  /** Milliseconds since 1970. */
  readonly updatedAt: number;
}

interface CatalogueRepositoryOptions {
  readonly database: Database;
  readonly now: () => number;
  readonly onError: (error: unknown) => void;
  readonly refreshMs?: number;
  /** Called after each write, for other coordinators. */
  readonly onWrite?: () => void;
}

const REFRESH_MS = 10_000;

export class CatalogueRepository {
  readonly #database: Database;
  readonly #now: () => number;
  readonly #refreshing: PeriodicRefresh;
  readonly #onWrite: () => void;
  #entries: ReadonlyMap<string, CatalogueEntry> = new Map();
  /** Called when a read has found changed entries. */
  onChange: () => void = () => {};

  /** Loads the catalogue and starts the periodic refresh. The caller must call `close`. */
  static async open(options: CatalogueRepositoryOptions): Promise<CatalogueRepository> {
    const repository = new CatalogueRepository(options);
    await repository.#refreshing.begin();
    return repository;
  }

  private constructor({ database, now, onError, onWrite = () => {}, refreshMs = REFRESH_MS }: CatalogueRepositoryOptions) {
    this.#database = database;
    this.#now = now;
    this.#onWrite = onWrite;
    this.#refreshing = new PeriodicRefresh({ read: () => this.refresh(), everyMs: refreshMs, onError });
  }

  get entries(): ReadonlyMap<string, CatalogueEntry> {
    return this.#entries;
  }

  /** Adds or replaces an entry. The caller may pass `transact` to add writes of its own to the transaction. */
  async put(
    entry: Omit<CatalogueEntry, 'updatedAt'>,
    transact: (write: (transaction: Database) => Promise<void>) => Promise<unknown> = (write) =>
      this.#database.transaction().execute(write),
  ): Promise<void> {
    const now = this.#now();
    const shown = {
      display_name: entry.displayName,
      quantization: entry.quantization,
      model_type: entry.modelType,
      min_memory_bytes: entry.minMemoryBytes,
      updated_at: now,
    };
    const write = async (transaction: Database): Promise<void> => {
      await transaction
        .insertInto('catalogue_models')
        .values({ id: entry.id, ...shown, created_at: now })
        .onConflict((conflict) => conflict.column('id').doUpdateSet(shown))
        .execute();
      await transaction.deleteFrom('catalogue_files').where('model_id', '=', entry.id).execute();
      const files = [...new Set(entry.fileSha256)].map((sha256) => ({ model_id: entry.id, sha256 }));
      if (files.length > 0) await transaction.insertInto('catalogue_files').values(files).execute();
    };
    try {
      await transact(write);
    } finally {
      // Also after an error, which may follow the commit.
      this.#onWrite();
    }
    await this.refresh();
  }

  async remove(id: string): Promise<boolean> {
    const removed = await this.#database.transaction().execute(async (transaction) => {
      await transaction.deleteFrom('catalogue_files').where('model_id', '=', id).execute();
      const { numDeletedRows } = await transaction.deleteFrom('catalogue_models').where('id', '=', id).executeTakeFirst();
      return numDeletedRows > 0n;
    });
    this.#onWrite();
    await this.refresh();
    return removed;
  }

  /** Reads the catalogue again. */
  async refresh(): Promise<void> {
    const rows = await this.#database
      .selectFrom('catalogue_models')
      .leftJoin('catalogue_files', 'catalogue_files.model_id', 'catalogue_models.id')
      .selectAll('catalogue_models')
      .select('catalogue_files.sha256')
      .orderBy('catalogue_models.id')
      .orderBy('catalogue_files.sha256')
      .execute();
    const entries = new Map<string, CatalogueEntry & { fileSha256: string[] }>();
    for (const row of rows) {
      const entry = entries.get(row.id) ?? {
        id: row.id,
        displayName: row.display_name,
        quantization: row.quantization,
        modelType: row.model_type,
        minMemoryBytes: row.min_memory_bytes,
        fileSha256: [],
        updatedAt: row.updated_at,
      };
      if (row.sha256 !== null) entry.fileSha256.push(row.sha256);
      entries.set(row.id, entry);
    }
    const before = JSON.stringify([...this.#entries.values()]);
    this.#entries = entries;
    if (JSON.stringify([...entries.values()]) !== before) this.onChange();
  }

  /** Reads changes of other coordinators. Never rejects. */
  changedElsewhere(): Promise<void> {
    return this.#refreshing.refreshNow();
  }

  close(): void {
    this.#refreshing.close();
  }
}
