/**
 * `ReputationRepository`: stores what each provider did wrong (its reputation), and tells coordinators what others have stored.
 *
 * Rows are queued in memory and written every second, so a crash loses about a second. The last write of a row wins.
 */
import { type ProviderId, RESTRICTION_REASONS, type RestrictionReason, withTimeLimit } from '@inference/protocol';
import { dialectOf } from '../connection/dialect.js';
import { MAX_READ_MS, PeriodicRefresh } from '../periodic-refresh.js';
import { everyPeriod } from '../periodic-work.js';
import type { Database, Tables } from '../tables.js';
import { type WriteBacklog, WriteBehindQueue } from '../write-behind-queue.js';

/** Stored form of a provider's reputation. Times in milliseconds since 1970. */
interface StoredReputation {
  /** Decaying sum of past failures, as of the time `at`. */
  readonly weight: number;
  /** Number of consecutive slow answers. */
  readonly late: number;
  readonly at: number;
  /** Null: jobs are not restricted. */
  readonly restriction: {
    readonly kind: 'cooldown' | 'quarantine';
    readonly reason: RestrictionReason;
    readonly detail: string;
    readonly since: number;
    readonly until: number;
  } | null;
  readonly cooldowns: number;
  readonly quarantines: number;
  readonly cooldownsAt: number;
  readonly quarantinesAt: number;
}

interface ReputationRepositoryOptions {
  readonly database: Database;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly onWriteError: (error: unknown) => void;
  readonly writeEveryMs?: number;
  readonly refreshMs?: number;
  readonly deleteEveryMs?: number;
}

const WRITE_EVERY_MS = 1000;
/** Only on PostgreSQL, where several coordinators may write. */
const REFRESH_MS = 5000;
/** Interval of deletions, and minimum age of the rows that they delete: other coordinators may be unable to read for a while. */
const DELETE_EVERY_MS = 3_600_000;
/** Minimum age of expired rows that are deleted at the start or by a flush, so that other coordinators can read them until then. */
const SETTLED_MS = 60_000;
/** Each row has fourteen parameters. SQLite allows 32,766 per statement, PostgreSQL 65,535. */
const ROWS_PER_STATEMENT = 500;
const MAX_WAITING = 100_000;

type Row = Tables['provider_reputations'];

const COLUMNS = [
  'weight',
  'late',
  'at',
  'restraint_kind',
  'restraint_reason',
  'restraint_detail',
  'restraint_since',
  'restraint_until',
  'cooldowns',
  'quarantines',
  'cooldowns_at',
  'quarantines_at',
] as const satisfies readonly (keyof Row)[];

export class ReputationRepository {
  /** Members that `open` has loaded. */
  readonly #stored: (readonly [ProviderId, StoredReputation])[] = [];
  readonly #database: Database;
  /** Queued rows. Null: the reputation has expired, so the row is removed if it is older than {@link SETTLED_MS}. */
  readonly #rows: WriteBehindQueue<ProviderId, StoredReputation | null>;
  readonly #now: () => number;
  readonly #onError: (error: unknown) => void;
  /** Content of each row as last read or written here. If the stored row differs, another coordinator wrote it. Key: provider id. */
  readonly #seenContent = new Map<string, string>();
  /** Providers changed here while a read runs; null: no read runs. */
  #changedDuringRead: Set<ProviderId> | null = null;
  readonly #refreshing: PeriodicRefresh | null;
  readonly #stopDeletions: () => Promise<void>;
  /** The running read, for which the next one waits. */
  #reading: Promise<unknown> = Promise.resolve();
  /** Called with reputations that other coordinators have written. While null, nothing is read. */
  onChange: ((providerId: ProviderId, reputation: StoredReputation) => void) | null = null;

  /** Deletes expired reputations, then also every hour, and loads the others. The caller must call `close`. */
  static async open(options: ReputationRepositoryOptions): Promise<ReputationRepository> {
    await deleteExpired(options, SETTLED_MS);
    const repository = new ReputationRepository(options);
    repository.onChange = (...one) => void repository.#stored.push(one);
    await (repository.#refreshing?.begin() ?? repository.refresh());
    repository.onChange = null;
    return repository;
  }

  private constructor(options: ReputationRepositoryOptions) {
    this.#database = options.database;
    this.#now = options.now;
    const isShared = dialectOf(options.database) === 'postgres';
    const onError = options.onWriteError;
    this.#onError = onError;
    this.#refreshing = isShared
      ? new PeriodicRefresh({ read: () => this.refresh(), everyMs: options.refreshMs ?? REFRESH_MS, onError })
      : null;
    this.#rows = new WriteBehindQueue({
      write: (piece) => this.#write(piece),
      onWriteError: options.onWriteError,
      everyMs: options.writeEveryMs ?? WRITE_EVERY_MS,
      perWrite: ROWS_PER_STATEMENT,
      maxWaiting: MAX_WAITING,
    });
    this.#stopDeletions = everyPeriod({
      database: options.database,
      name: 'delete expired reputations',
      periodMs: options.deleteEveryMs ?? DELETE_EVERY_MS,
      work: async () => {
        for (const providerId of await deleteExpired(options, DELETE_EVERY_MS)) this.#seenContent.delete(providerId);
      },
      onError,
    });
  }

  /** Reputations as loaded by `open`, oldest first. */
  get stored(): readonly (readonly [ProviderId, StoredReputation])[] {
    return this.#stored;
  }

  /** Queues the reputation of a provider; null: it has expired. */
  put(providerId: ProviderId, reputation: StoredReputation | null): void {
    this.#changedDuringRead?.add(providerId);
    this.#rows.put(providerId, reputation);
  }

  /**
   * Reports changed rows, except of providers with queued rows, or with changes during the read.
   *
   * Deleted rows are not reported, because the reputations expire here too.
   */
  refresh(): Promise<void> {
    return this.#readNext(null);
  }

  /** Like {@link refresh}, for providers that another coordinator has restricted or reinstated. Never rejects. */
  changedElsewhere(providerIds: ReadonlySet<string>): Promise<void> {
    return this.#readNext([...providerIds]).catch(this.#onError);
  }

  #readNext(providerIds: readonly string[] | null): Promise<void> {
    const read = this.#reading.then(() => this.#read(providerIds));
    this.#reading = withTimeLimit(
      read.catch(() => {}),
      MAX_READ_MS,
    );
    return read;
  }

  async #read(providerIds: readonly string[] | null): Promise<void> {
    const { onChange } = this;
    if (onChange === null) return;
    const own = new Set(this.#rows.keys());
    this.#changedDuringRead = own;
    try {
      const all = this.#database.selectFrom('provider_reputations').selectAll().orderBy('at');
      const rows = await (providerIds === null ? all : all.where('provider_id', 'in', providerIds)).execute();
      for (const row of rows) {
        const text = textOf(row);
        if (own.has(row.provider_id as ProviderId) || this.#seenContent.get(row.provider_id) === text) continue;
        this.#seenContent.set(row.provider_id, text);
        for (const [providerId, reputation] of fromRow(row)) onChange(providerId, reputation);
      }
    } finally {
      this.#changedDuringRead = null;
    }
  }

  /** Writes queued rows. Never rejects. */
  flush(): Promise<void> {
    return this.#rows.flush();
  }

  get backlog(): WriteBacklog {
    return this.#rows.backlog;
  }

  async close(): Promise<void> {
    this.#refreshing?.close();
    await this.#stopDeletions();
    await this.#rows.close();
  }

  async #write(piece: readonly (readonly [ProviderId, StoredReputation | null])[]): Promise<void> {
    const now = this.#now();
    const rows = piece.flatMap(([providerId, reputation]) => (reputation === null ? [] : [toRow(providerId, reputation, now)]));
    const expired = piece.flatMap(([providerId, reputation]) => (reputation === null ? [providerId] : []));
    if (rows.length > 0) {
      await this.#database
        .insertInto('provider_reputations')
        .values(rows)
        .onConflict((conflict) =>
          conflict
            .column('provider_id')
            .doUpdateSet((set) =>
              Object.fromEntries([...COLUMNS, 'written_at' as const].map((column) => [column, set.ref(`excluded.${column}`)])),
            ),
        )
        .execute();
      for (const row of rows) this.#seenContent.set(row.provider_id, textOf(row));
    }
    if (expired.length === 0) return;
    const deletion = this.#database.deleteFrom('provider_reputations').where('provider_id', 'in', expired);
    await deletion.where('written_at', '<', now - SETTLED_MS).execute();
    for (const providerId of expired) this.#seenContent.delete(providerId);
  }
}

/** Deletes rows older than `minAgeMs` that record neither failures nor restrictions, such as reset ones. Returns their provider ids. */
async function deleteExpired(
  { database, now }: Pick<ReputationRepositoryOptions, 'database' | 'now'>,
  minAgeMs: number,
): Promise<string[]> {
  const deleted = await database
    .deleteFrom('provider_reputations')
    .where('restraint_kind', 'is', null)
    .where('weight', '=', 0)
    .where('late', '=', 0)
    .where('cooldowns', '=', 0)
    .where('quarantines', '=', 0)
    .where('written_at', '<', now() - minAgeMs)
    .returning('provider_id')
    .execute();
  return deleted.map(({ provider_id }) => provider_id);
}

function toRow(providerId: ProviderId, { restriction, ...reputation }: StoredReputation, now: number): Row {
  return {
    provider_id: providerId,
    weight: reputation.weight,
    late: reputation.late,
    at: Math.round(reputation.at),
    restraint_kind: restriction?.kind ?? null,
    restraint_reason: restriction?.reason ?? null,
    restraint_detail: restriction?.detail ?? null,
    restraint_since: restriction === null ? null : Math.round(restriction.since),
    restraint_until: restriction === null ? null : Math.round(restriction.until),
    cooldowns: reputation.cooldowns,
    quarantines: reputation.quarantines,
    cooldowns_at: Math.round(reputation.cooldownsAt),
    quarantines_at: Math.round(reputation.quarantinesAt),
    written_at: now,
  };
}

function textOf(row: Row): string {
  return JSON.stringify(COLUMNS.map((column) => row[column]));
}

/** Empty for a row that another version has written in another form. */
function fromRow(row: Row): [] | [readonly [ProviderId, StoredReputation]] {
  const restriction = restrictionOf(row);
  if (restriction === undefined) return [];
  const { weight, late, at, cooldowns, quarantines } = row;
  const counts = { weight, late, at, cooldowns, quarantines };
  return [[row.provider_id as ProviderId, { ...counts, restriction, cooldownsAt: row.cooldowns_at, quarantinesAt: row.quarantines_at }]];
}

function restrictionOf(row: Row): StoredReputation['restriction'] | undefined {
  const { restraint_kind: kind, restraint_since: since, restraint_until: until } = row;
  if (kind === null) return null;
  const reason = RESTRICTION_REASONS.find((known) => known === row.restraint_reason);
  if ((kind !== 'cooldown' && kind !== 'quarantine') || reason === undefined || since === null || until === null) return undefined;
  return { kind, reason, detail: row.restraint_detail ?? '', since, until };
}
