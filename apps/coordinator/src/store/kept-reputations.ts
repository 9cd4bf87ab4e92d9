/**
 * The reputations of enclave keys, kept over restarts. A placement waits for none of it: what is new of a key is gathered for a
 * moment and written with others. What a crash takes with it is that moment. Coordinators that share a database each write what
 * they saw last, and read it when they start.
 */
import { type ProviderId, RESTRAINT_REASONS, type RestraintReason } from '@inference/protocol';
import type { Database, Tables } from './tables.js';
import { WriteBehind } from './write-behind.js';

/** As the fleet counts it; see `fleet/reputation`. Times in milliseconds since 1970. */
export interface KeptReputation {
  readonly weight: number;
  readonly late: number;
  readonly at: number;
  readonly restraint: {
    readonly kind: 'cooldown' | 'quarantine';
    readonly reason: RestraintReason;
    readonly detail: string;
    readonly since: number;
    readonly until: number;
  } | null;
  readonly cooldowns: number;
  readonly quarantines: number;
  readonly cooldownsAt: number;
  readonly quarantinesAt: number;
}

export interface KeptReputationsOptions {
  readonly database: Database;
  readonly onWriteError: (error: unknown) => void;
  readonly writeEveryMs?: number;
}

const WRITE_EVERY_MS = 1000;
/** Thirteen parameters each: SQLite allows 32766 in a statement, PostgreSQL 65535. */
const ROWS_PER_STATEMENT = 500;
const MOST_WAITING = 100_000;

type Row = Tables['provider_reputations'];

export class KeptReputations {
  /** As they were when this was opened, the oldest first. */
  readonly known: readonly (readonly [ProviderId, KeptReputation])[];
  readonly #database: Database;
  /** Null: nothing of it counts any more. */
  readonly #rows: WriteBehind<ProviderId, KeptReputation | null>;

  /** Reads what is kept. Callers close it. */
  static async open(options: KeptReputationsOptions): Promise<KeptReputations> {
    const rows = await options.database.selectFrom('provider_reputations').selectAll().orderBy('at').execute();
    return new KeptReputations(options, rows.flatMap(fromRow));
  }

  private constructor(options: KeptReputationsOptions, known: KeptReputations['known']) {
    this.known = known;
    this.#database = options.database;
    this.#rows = new WriteBehind({
      write: (piece) => this.#write(piece),
      onWriteError: options.onWriteError,
      everyMs: options.writeEveryMs ?? WRITE_EVERY_MS,
      perWrite: ROWS_PER_STATEMENT,
      mostWaiting: MOST_WAITING,
    });
  }

  /** Keeps what is new of a key; null: forgets it. */
  put(providerId: ProviderId, reputation: KeptReputation | null): void {
    this.#rows.put(providerId, reputation);
  }

  /** Writes what waits. Never rejects. */
  flush(): Promise<void> {
    return this.#rows.flush();
  }

  close(): Promise<void> {
    return this.#rows.close();
  }

  async #write(piece: readonly (readonly [ProviderId, KeptReputation | null])[]): Promise<void> {
    const rows = piece.flatMap(([providerId, reputation]) => (reputation === null ? [] : [toRow(providerId, reputation)]));
    const forgotten = piece.flatMap(([providerId, reputation]) => (reputation === null ? [providerId] : []));
    if (rows.length > 0) {
      await this.#database
        .insertInto('provider_reputations')
        .values(rows)
        .onConflict((conflict) =>
          conflict.column('provider_id').doUpdateSet((set) => ({
            weight: set.ref('excluded.weight'),
            late: set.ref('excluded.late'),
            at: set.ref('excluded.at'),
            restraint_kind: set.ref('excluded.restraint_kind'),
            restraint_reason: set.ref('excluded.restraint_reason'),
            restraint_detail: set.ref('excluded.restraint_detail'),
            restraint_since: set.ref('excluded.restraint_since'),
            restraint_until: set.ref('excluded.restraint_until'),
            cooldowns: set.ref('excluded.cooldowns'),
            quarantines: set.ref('excluded.quarantines'),
            cooldowns_at: set.ref('excluded.cooldowns_at'),
            quarantines_at: set.ref('excluded.quarantines_at'),
          })),
        )
        .execute();
    }
    if (forgotten.length > 0) await this.#database.deleteFrom('provider_reputations').where('provider_id', 'in', forgotten).execute();
  }
}

function toRow(providerId: ProviderId, { restraint, ...reputation }: KeptReputation): Row {
  return {
    provider_id: providerId,
    weight: reputation.weight,
    late: reputation.late,
    at: Math.round(reputation.at),
    restraint_kind: restraint?.kind ?? null,
    restraint_reason: restraint?.reason ?? null,
    restraint_detail: restraint?.detail ?? null,
    restraint_since: restraint === null ? null : Math.round(restraint.since),
    restraint_until: restraint === null ? null : Math.round(restraint.until),
    cooldowns: reputation.cooldowns,
    quarantines: reputation.quarantines,
    cooldowns_at: Math.round(reputation.cooldownsAt),
    quarantines_at: Math.round(reputation.quarantinesAt),
  };
}

/** Nothing for a row that this program does not understand. */
function fromRow(row: Row): [] | [readonly [ProviderId, KeptReputation]] {
  const restraint = restraintOf(row);
  if (restraint === undefined) return [];
  const { weight, late, at, cooldowns, quarantines } = row;
  const counts = { weight, late, at, cooldowns, quarantines };
  return [[row.provider_id as ProviderId, { ...counts, restraint, cooldownsAt: row.cooldowns_at, quarantinesAt: row.quarantines_at }]];
}

function restraintOf(row: Row): KeptReputation['restraint'] | undefined {
  const { restraint_kind: kind, restraint_since: since, restraint_until: until } = row;
  if (kind === null) return null;
  const reason = RESTRAINT_REASONS.find((known) => known === row.restraint_reason);
  if ((kind !== 'cooldown' && kind !== 'quarantine') || reason === undefined || since === null || until === null) return undefined;
  return { kind, reason, detail: row.restraint_detail ?? '', since, until };
}
