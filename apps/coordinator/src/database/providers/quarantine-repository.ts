/**
 * Machines that an operator has taken out of routing, until one lets them in again. All of them are in memory, because placement
 * asks for each machine; the database is read every few seconds, so that what one coordinator decides reaches the others.
 */
import type { ProviderId } from '@inference/protocol';
import { PeriodicRefresh } from '../periodic-refresh.js';
import type { Database } from '../tables.js';

export interface Quarantine {
  /** In the operator's words; the owner of the machine reads it. */
  readonly reason: string;
  /** Milliseconds since 1970. */
  readonly since: number;
  /** Who did it: `account:<id>` or `key:<id>`. */
  readonly by: string;
}

export interface QuarantineRepositoryOptions {
  readonly database: Database;
  readonly now: () => number;
  readonly onError: (error: unknown) => void;
  readonly refreshMs?: number;
}

const REFRESH_MS = 3000;

export class QuarantineRepository {
  readonly #database: Database;
  readonly #now: () => number;
  readonly #refreshing: PeriodicRefresh;
  #holds: ReadonlyMap<ProviderId, Quarantine> = new Map();
  /** Changes made here: what was read before one of them says nothing. */
  #changes = 0;
  /** Called with the machines whose hold began, changed or ended. */
  onChange: (providerIds: readonly ProviderId[]) => void = () => {};

  /** Opens the book with what is in it. Callers close it. */
  static async open(options: QuarantineRepositoryOptions): Promise<QuarantineRepository> {
    const book = new QuarantineRepository(options);
    await book.#refreshing.begin();
    return book;
  }

  private constructor({ database, now, onError, refreshMs = REFRESH_MS }: QuarantineRepositoryOptions) {
    this.#database = database;
    this.#now = now;
    this.#refreshing = new PeriodicRefresh({ read: () => this.refresh(), everyMs: refreshMs, onError });
  }

  of(providerId: ProviderId): Quarantine | null {
    return this.#holds.get(providerId) ?? null;
  }

  get all(): ReadonlyMap<ProviderId, Quarantine> {
    return this.#holds;
  }

  /** Holds a machine back. One that is held already keeps its beginning and gets the new reason. */
  async put(providerId: ProviderId, reason: string, by: string): Promise<Quarantine> {
    await this.#database
      .insertInto('provider_holds')
      .values({ provider_id: providerId, reason, since: this.#now(), held_by: by })
      .onConflict((conflict) => conflict.column('provider_id').doUpdateSet({ reason, held_by: by }))
      .execute();
    this.#changes++;
    await this.refresh();
    return this.of(providerId) ?? { reason, since: this.#now(), by };
  }

  /** Lets a machine in again. False when it was not held back. */
  async remove(providerId: ProviderId): Promise<boolean> {
    const { numDeletedRows } = await this.#database.deleteFrom('provider_holds').where('provider_id', '=', providerId).executeTakeFirst();
    this.#changes++;
    await this.refresh();
    return numDeletedRows > 0n;
  }

  /** Reads all of them again. */
  async refresh(): Promise<void> {
    const changes = this.#changes;
    const rows = await this.#database.selectFrom('provider_holds').selectAll().execute();
    if (changes !== this.#changes) return this.refresh();
    const before = this.#holds;
    this.#holds = new Map(rows.map((row) => [row.provider_id as ProviderId, { reason: row.reason, since: row.since, by: row.held_by }]));
    const changed = [...new Set([...before.keys(), ...this.#holds.keys()])].filter(
      (id) => before.get(id)?.reason !== this.#holds.get(id)?.reason || before.get(id)?.since !== this.#holds.get(id)?.since,
    );
    if (changed.length > 0) this.onChange(changed);
  }

  close(): void {
    this.#refreshing.close();
  }
}
