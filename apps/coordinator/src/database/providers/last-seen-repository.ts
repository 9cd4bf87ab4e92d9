/**
 * `LastSeenRepository`: last known state of linked providers, recorded when a connection begins or ends.
 *
 * Rows are queued in memory and written in batches, so a crash loses the queued ones.
 */
import type { ProviderId } from '@inference/protocol';
import { lazyValidator } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { isUnclaimed } from '../ledger/unclaimed-accounts.js';
import type { Database } from '../tables.js';
import { type WriteBacklog, WriteBehindQueue } from '../write-behind-queue.js';

const LastFactsSchema = Type.Object({
  serial_number: Type.String(),
  chip_name: Type.String(),
  agent: Type.Object({ name: Type.String(), version: Type.String() }),
  trust_level: Type.Enum(['none', 'self_signed', 'hardware']),
  models: Type.Array(Type.String()),
  requests_served: Type.Integer({ minimum: 0 }),
  tokens_generated: Type.Integer({ minimum: 0 }),
  decode_tps: Type.Union([Type.Number(), Type.Null()]),
  /** Reason code of the connection's end. Null: connected, or the coordinator stopped without recording the end. */
  left: Type.Union([Type.String(), Type.Null()]),
});
export type LastFacts = Static<typeof LastFactsSchema>;

export interface LastSeen {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly facts: LastFacts;
}

interface LastSeenRepositoryOptions {
  readonly database: Database;
  readonly onWriteError: (error: unknown) => void;
  readonly writeEveryMs?: number;
}

const WRITE_EVERY_MS = 2000;
const ROWS_PER_STATEMENT = 500;
const MAX_WAITING = 50_000;
const isFacts = lazyValidator(LastFactsSchema);

export class LastSeenRepository {
  readonly #database: Database;
  readonly #rows: WriteBehindQueue<ProviderId, LastSeen>;

  constructor({ database, onWriteError, writeEveryMs = WRITE_EVERY_MS }: LastSeenRepositoryOptions) {
    this.#database = database;
    this.#rows = new WriteBehindQueue({
      write: (piece) => this.#write(piece),
      onWriteError,
      everyMs: writeEveryMs,
      perWrite: ROWS_PER_STATEMENT,
      maxWaiting: MAX_WAITING,
    });
  }

  /** Queues the state of a provider. Written only if an account owns the provider by then. */
  note(providerId: ProviderId, seen: LastSeen): void {
    this.#rows.put(providerId, seen);
  }

  /** Last known states of these providers. */
  async of(providerIds: readonly string[]): Promise<ReadonlyMap<string, LastSeen>> {
    const seen = new Map<string, LastSeen>();
    for (let start = 0; start < providerIds.length; start += ROWS_PER_STATEMENT) {
      const piece = providerIds.slice(start, start + ROWS_PER_STATEMENT);
      const rows = await this.#database.selectFrom('machines_last_seen').selectAll().where('provider_id', 'in', piece).execute();
      for (const row of rows) {
        const facts: unknown = JSON.parse(row.facts);
        // Skips rows that another version of this program has written in another form.
        if (isFacts().Check(facts)) seen.set(row.provider_id, { at: row.seen_at, facts });
      }
    }
    for (const id of providerIds) {
      const waiting = this.#rows.get(id as ProviderId);
      if (waiting !== undefined) seen.set(id, waiting);
    }
    return seen;
  }

  /** Writes queued rows. Never rejects. */
  flush(): Promise<void> {
    return this.#rows.flush();
  }

  get backlog(): WriteBacklog {
    return this.#rows.backlog;
  }

  close(): Promise<void> {
    return this.#rows.close();
  }

  /** Writes only providers that are linked to an account, because only owners can see the state. */
  async #write(piece: readonly (readonly [ProviderId, LastSeen])[]): Promise<void> {
    const ids = piece.map(([id]) => id as string);
    const owned = await this.#database
      .selectFrom('provider_owners')
      .select(['provider_id', 'account_id'])
      .where('provider_id', 'in', ids)
      .execute();
    const linked = new Set(owned.flatMap((row) => (isUnclaimed(row.account_id) ? [] : [row.provider_id])));
    const rows = piece
      .filter(([id]) => linked.has(id))
      .map(([id, { at, facts }]) => ({ provider_id: id, seen_at: Math.round(at), facts: JSON.stringify(facts) }));
    if (rows.length === 0) return;
    await this.#database
      .insertInto('machines_last_seen')
      .values(rows)
      .onConflict((conflict) =>
        conflict.column('provider_id').doUpdateSet((set) => ({ seen_at: set.ref('excluded.seen_at'), facts: set.ref('excluded.facts') })),
      )
      .execute();
  }
}
