/** Bound on the sessions of one user. The table is the sign-in library's. */
import { sql } from 'kysely';
import type { Database } from '../tables.js';

export const MAX_SESSIONS = 100;

/** Ends the oldest sessions of a user who has too many. Called after one was added, so that none is left over by two at once. */
export async function endOldestSessions(database: Database, userId: string): Promise<void> {
  const newest = sql`select id from auth_sessions where user_id = ${userId} order by created_at desc, id limit ${MAX_SESSIONS}`;
  await sql`delete from auth_sessions where user_id = ${userId} and id not in (${newest})`.execute(database);
}
