/** `OrganisationLog`: log of members' actions in an organisation. `addEvent` adds an event within the transaction of the action. */
import { randomUUID } from 'node:crypto';
import { isAfterPosition, removeOldestRows } from '../row-position.js';
import type { Database, OrganisationAction } from '../tables.js';
import type { TimeSpan } from '../time-span.js';
import type { OrganisationRole } from './organisation-roles.js';

/** Maximum stored events per organisation. */
export const MAX_EVENTS = 1000;
const MAX_SUBJECT_CHARS = 256;

export interface OrganisationAct {
  readonly organisationId: string;
  /** User who acted. */
  readonly actorId: string;
  readonly action: OrganisationAction;
  /** Object of the action: an e-mail address, a name or an id. */
  readonly subject?: string | null;
  readonly role?: OrganisationRole | null;
}

export interface OrganisationEvent {
  readonly id: string;
  readonly at: number;
  /** Null: the user's account was deleted. */
  readonly actor: { readonly id: string; readonly name: string; readonly email: string } | null;
  readonly action: OrganisationAction;
  readonly subject: string | null;
  readonly role: OrganisationRole | null;
}

export class OrganisationLog {
  readonly #database: Database;
  readonly #now: () => number;

  constructor(options: { readonly database: Database; readonly now: () => number }) {
    this.#database = options.database;
    this.#now = options.now;
  }

  add(act: OrganisationAct): Promise<void> {
    return addEvent(this.#database, act, this.#now());
  }

  /** At most `limit` events, newest first, after the position `after` and within the time span. */
  async list(
    organisationId: string,
    limit: number,
    after: { readonly at: number; readonly id: string } | null,
    { from, to }: TimeSpan = { from: null, to: null },
  ): Promise<OrganisationEvent[]> {
    let query = this.#database
      .selectFrom('organisation_events as event')
      .leftJoin('auth_users', 'auth_users.id', 'event.actor_id')
      .select(['event.id', 'event.at', 'event.action', 'event.subject', 'event.role', 'auth_users.id as user_id'])
      .select(['auth_users.name', 'auth_users.email'])
      .where('event.organisation_id', '=', organisationId);
    if (from !== null) query = query.where('event.at', '>=', from);
    if (to !== null) query = query.where('event.at', '<', to);
    if (after !== null) {
      query = query.where((where) => isAfterPosition(where, 'event.at', 'event.id', after));
    }
    const rows = await query.orderBy('event.at', 'desc').orderBy('event.id', 'desc').limit(limit).execute();
    return rows.map(({ user_id, name, email, ...event }) => ({
      ...event,
      actor: user_id === null ? null : { id: user_id, name: name ?? '', email: email ?? '' },
    }));
  }
}

/** Adds an event, and removes the organisation's oldest events beyond {@link MAX_EVENTS}. */
export async function addEvent(database: Database, act: OrganisationAct, at: number): Promise<void> {
  const { organisationId: organisation_id, actorId: actor_id, action, subject = null, role = null } = act;
  await database
    .insertInto('organisation_events')
    .values({ id: randomUUID(), organisation_id, at, actor_id, action, subject: subject?.slice(0, MAX_SUBJECT_CHARS) ?? null, role })
    .execute();
  const bound = { table: 'organisation_events', ownerColumn: 'organisation_id', maxRows: MAX_EVENTS } as const;
  await removeOldestRows(database, bound, organisation_id);
}
