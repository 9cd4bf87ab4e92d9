/**
 * `QuarantineRepository`: providers that an operator has excluded from jobs.
 *
 * Cached in memory, because every choice of a provider asks, and read again from the database every three seconds.
 */
import type { ProviderId } from '@inference/protocol';
import { PeriodicRefresh } from '../periodic-refresh.js';
import type { Database } from '../tables.js';

export interface Quarantine {
  /** Written by the operator and shown to the provider's owner. */
  readonly reason: string;
  /** Milliseconds since 1970. */
  readonly since: number;
  /** Operator: `account:<id>` or `key:<id>`. */
  readonly by: string;
}

interface QuarantineRepositoryOptions {
  readonly database: Database;
  readonly now: () => number;
  readonly onError: (error: unknown) => void;
  readonly refreshMs?: number;
  /** Called after each write, for other coordinators. */
  readonly onWrite?: () => void;
}

const REFRESH_MS = 3000;

export class QuarantineRepository {
  readonly #database: Database;
  readonly #now: () => number;
  readonly #refreshing: PeriodicRefresh;
  readonly #onWrite: () => void;
  #quarantines: ReadonlyMap<ProviderId, Quarantine> = new Map();
  /** Number of local writes. If it changes during a read, the read is repeated. */
  #changes = 0;
  /** Called with providers whose quarantine began or ended, or whose reason or start changed. */
  onChange: (providerIds: readonly ProviderId[]) => void = () => {};

  /** Loads the quarantines and starts the periodic refresh. The caller must call `close`. */
  static async open(options: QuarantineRepositoryOptions): Promise<QuarantineRepository> {
    const repository = new QuarantineRepository(options);
    await repository.#refreshing.begin();
    return repository;
  }

  private constructor({ database, now, onError, onWrite = () => {}, refreshMs = REFRESH_MS }: QuarantineRepositoryOptions) {
    this.#database = database;
    this.#now = now;
    this.#onWrite = onWrite;
    this.#refreshing = new PeriodicRefresh({ read: () => this.refresh(), everyMs: refreshMs, onError });
  }

  of(providerId: ProviderId): Quarantine | null {
    return this.#quarantines.get(providerId) ?? null;
  }

  get all(): ReadonlyMap<ProviderId, Quarantine> {
    return this.#quarantines;
  }

  /** Quarantines a provider. For a quarantined provider, replaces reason and operator, but not `since`. */
  async put(providerId: ProviderId, reason: string, by: string): Promise<Quarantine> {
    await this.#database
      .insertInto('provider_holds')
      .values({ provider_id: providerId, reason, since: this.#now(), held_by: by })
      .onConflict((conflict) => conflict.column('provider_id').doUpdateSet({ reason, held_by: by }))
      .execute();
    this.#changes++;
    this.#onWrite();
    await this.refresh();
    return this.of(providerId) ?? { reason, since: this.#now(), by };
  }

  /** Lifts a quarantine. False if the provider was not quarantined. */
  async remove(providerId: ProviderId): Promise<boolean> {
    const { numDeletedRows } = await this.#database.deleteFrom('provider_holds').where('provider_id', '=', providerId).executeTakeFirst();
    this.#changes++;
    this.#onWrite();
    await this.refresh();
    return numDeletedRows > 0n;
  }

  async refresh(): Promise<void> {
    const changes = this.#changes;
    const rows = await this.#database.selectFrom('provider_holds').selectAll().execute();
    if (changes !== this.#changes) return this.refresh();
    const before = this.#quarantines;
    this.#quarantines = new Map(
      rows.map((row) => [row.provider_id as ProviderId, { reason: row.reason, since: row.since, by: row.held_by }]),
    );
    const changed = [...new Set([...before.keys(), ...this.#quarantines.keys()])].filter(
      (id) => before.get(id)?.reason !== this.#quarantines.get(id)?.reason || before.get(id)?.since !== this.#quarantines.get(id)?.since,
    );
    if (changed.length > 0) this.onChange(changed);
  }

  /** Reads changes of other coordinators. Never rejects. */
  changedElsewhere(): Promise<void> {
    return this.#refreshing.refreshNow();
  }

  close(): void {
    this.#refreshing.close();
  }
}
