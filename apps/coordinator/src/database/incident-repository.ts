/** `IncidentRepository`: incidents and maintenance that operators publish on the status page, with their updates. */
import { randomUUID } from 'node:crypto';
import { isAfterPosition } from './row-position.js';
import type { IncidentImpact, IncidentKind, IncidentStatus } from './tables/operations.js';
import type { Database, Tables } from './tables.js';

/** Maximum unresolved incidents, and maintenance that has not ended, at a time. */
export const MAX_OPEN_INCIDENTS = 20;
export const MAX_UPDATES_PER_INCIDENT = 50;
/** Maximum stored incidents. A new one removes the oldest above the maximum. */
const MAX_STORED_INCIDENTS = 1000;

export interface IncidentUpdate {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly status: IncidentStatus;
  readonly message: string;
}

export interface IncidentFields {
  readonly title: string;
  readonly impact: IncidentImpact;
  readonly components: readonly string[];
  readonly models: readonly string[];
  /** Scheduled time of maintenance, in milliseconds since 1970; null for incidents. */
  readonly startsAt: number | null;
  readonly endsAt: number | null;
}

export interface Incident extends IncidentFields {
  readonly id: string;
  readonly kind: IncidentKind;
  readonly createdAt: number;
  readonly resolvedAt: number | null;
  /** Last edit of the incident or of one of its updates; null: none, or not recorded. */
  readonly changedAt: number | null;
  /** Newest first. */
  readonly updates: readonly IncidentUpdate[];
}

type NewUpdate = Pick<IncidentUpdate, 'status' | 'message'>;

export class IncidentRepository {
  readonly #database: Database;
  readonly #now: () => number;

  constructor(options: { readonly database: Database; readonly now: () => number }) {
    this.#database = options.database;
    this.#now = options.now;
  }

  /** Returns the id of the new incident; null: {@link MAX_OPEN_INCIDENTS} are open. */
  async create(incident: Pick<Incident, 'kind'> & IncidentFields, update: NewUpdate): Promise<string | null> {
    const id = randomUUID();
    const now = this.#now();
    return this.#database.transaction().execute(async (transaction) => {
      const { open } = await transaction
        .selectFrom('incidents')
        .select((select) => select.fn.countAll<number>().as('open'))
        .where((where) =>
          where.and([where('resolved_at', 'is', null), where.or([where('ends_at', 'is', null), where('ends_at', '>', now)])]),
        )
        .executeTakeFirstOrThrow();
      if (Number(open) >= MAX_OPEN_INCIDENTS) return null;
      await transaction
        .insertInto('incidents')
        .values({ id, kind: incident.kind, ...toRow(incident), created_at: now, resolved_at: resolvedAt(update, now), changed_at: null })
        .execute();
      await insertUpdate(transaction, id, update, now);
      await removeOldest(transaction);
      return id;
    });
  }

  /** Returns whether the incident exists. */
  async change(id: string, fields: IncidentFields): Promise<boolean> {
    const changed = { ...toRow(fields), changed_at: this.#now() };
    const { numUpdatedRows } = await this.#database.updateTable('incidents').set(changed).where('id', '=', id).executeTakeFirst();
    return numUpdatedRows > 0n;
  }

  /** Adds an update. Its status `resolved` or `completed` ends the incident; any other status reopens it. */
  async addUpdate(id: string, update: NewUpdate): Promise<'added' | 'unknown' | 'too_many'> {
    const now = this.#now();
    return this.#database
      .transaction()
      .execute(async (transaction) => {
        const { numUpdatedRows } = await transaction
          .updateTable('incidents')
          .set({ resolved_at: resolvedAt(update, now) })
          .where('id', '=', id)
          .executeTakeFirst();
        if (numUpdatedRows === 0n) return 'unknown';
        const { count } = await transaction
          .selectFrom('incident_updates')
          .select((select) => select.fn.countAll<number>().as('count'))
          .where('incident_id', '=', id)
          .executeTakeFirstOrThrow();
        // The last possible update is reserved for the end of the incident.
        const max = resolvedAt(update, now) === null ? MAX_UPDATES_PER_INCIDENT - 1 : MAX_UPDATES_PER_INCIDENT;
        if (Number(count) >= max) throw new TooManyUpdates();
        await insertUpdate(transaction, id, update, now);
        return 'added' as const;
      })
      .catch((error: unknown) => {
        if (error instanceof TooManyUpdates) return 'too_many' as const;
        throw error;
      });
  }

  /** Returns whether the update exists. */
  async changeUpdate(id: string, updateId: string, message: string): Promise<boolean> {
    return this.#database.transaction().execute(async (transaction) => {
      const { numUpdatedRows } = await transaction
        .updateTable('incident_updates')
        .set({ message })
        .where('id', '=', updateId)
        .where('incident_id', '=', id)
        .executeTakeFirst();
      if (numUpdatedRows === 0n) return false;
      await transaction.updateTable('incidents').set({ changed_at: this.#now() }).where('id', '=', id).execute();
      return true;
    });
  }

  /** Returns whether the incident existed. */
  async remove(id: string): Promise<boolean> {
    return this.#database.transaction().execute(async (transaction) => {
      await transaction.deleteFrom('incident_updates').where('incident_id', '=', id).execute();
      const { numDeletedRows } = await transaction.deleteFrom('incidents').where('id', '=', id).executeTakeFirst();
      return numDeletedRows > 0n;
    });
  }

  async find(id: string): Promise<Incident | null> {
    const rows = await this.#database.selectFrom('incidents').selectAll().where('id', '=', id).execute();
    return (await this.#withUpdates(rows))[0] ?? null;
  }

  /** Newest first. `after`: position of the last incident of the page before. `endedAfter`: omits incidents that ended before that time. */
  async list(options: {
    readonly limit: number;
    readonly after?: { readonly at: number; readonly id: string } | null;
    readonly endedAfter?: number;
  }): Promise<Incident[]> {
    const { limit, after = null, endedAfter } = options;
    let query = this.#database.selectFrom('incidents').selectAll();
    if (after !== null) {
      query = query.where((where) => isAfterPosition(where, 'created_at', 'id', after));
    }
    if (endedAfter !== undefined) {
      query = query.where((where) =>
        where.or([
          where('resolved_at', '>', endedAfter),
          where.and([where('resolved_at', 'is', null), where.or([where('ends_at', 'is', null), where('ends_at', '>', endedAfter)])]),
        ]),
      );
    }
    return this.#withUpdates(await query.orderBy('created_at', 'desc').orderBy('id', 'desc').limit(limit).execute());
  }

  async #withUpdates(rows: readonly Tables['incidents'][]): Promise<Incident[]> {
    if (rows.length === 0) return [];
    const updates = await this.#database
      .selectFrom('incident_updates')
      .selectAll()
      .where(
        'incident_id',
        'in',
        rows.map(({ id }) => id),
      )
      .orderBy('at', 'desc')
      .orderBy('id', 'desc')
      .execute();
    const updatesByIncident = new Map<string, Tables['incident_updates'][]>();
    for (const update of updates) {
      const known = updatesByIncident.get(update.incident_id);
      if (known === undefined) updatesByIncident.set(update.incident_id, [update]);
      else known.push(update);
    }
    return rows.map((row) => fromRow(row, updatesByIncident.get(row.id) ?? []));
  }
}

/** Thrown to roll the transaction back. */
class TooManyUpdates extends Error {}

function resolvedAt({ status }: NewUpdate, now: number): number | null {
  return status === 'resolved' || status === 'completed' ? now : null;
}

async function insertUpdate(transaction: Database, incidentId: string, { status, message }: NewUpdate, at: number): Promise<void> {
  await transaction.insertInto('incident_updates').values({ id: randomUUID(), incident_id: incidentId, at, status, message }).execute();
}

async function removeOldest(transaction: Database): Promise<void> {
  const surplus = await transaction
    .selectFrom('incidents')
    .select('id')
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(MAX_OPEN_INCIDENTS)
    .offset(MAX_STORED_INCIDENTS)
    .execute();
  const ids = surplus.map(({ id }) => id);
  if (ids.length === 0) return;
  await transaction.deleteFrom('incident_updates').where('incident_id', 'in', ids).execute();
  await transaction.deleteFrom('incidents').where('id', 'in', ids).execute();
}

function toRow({ title, impact, components, models, startsAt, endsAt }: IncidentFields) {
  return { title, impact, components: JSON.stringify(components), models: JSON.stringify(models), starts_at: startsAt, ends_at: endsAt };
}

function fromRow(row: Tables['incidents'], updates: readonly Tables['incident_updates'][]): Incident {
  return {
    id: row.id,
    kind: row.kind,
    title: row.title,
    impact: row.impact,
    components: JSON.parse(row.components) as string[],
    models: JSON.parse(row.models) as string[],
    startsAt: row.starts_at,
    endsAt: row.ends_at,
    createdAt: row.created_at,
    resolvedAt: row.resolved_at,
    changedAt: row.changed_at,
    updates: updates.map(({ id, at, status, message }) => ({ id, at, status, message })),
  };
}
