/** `endOldestSessions`: limits the sessions of a user. The table belongs to better-auth, the sign-in library. */
import { sql } from 'kysely';
import type { Database } from '../tables.js';

export const MAX_SESSIONS = 100;

/** Deletes the oldest sessions above the maximum. Called after an insert, so that concurrent sign-ins cannot exceed it. */
export async function endOldestSessions(database: Database, userId: string): Promise<void> {
  const newest = sql`select id from auth_sessions where user_id = ${userId} order by created_at desc, id limit ${MAX_SESSIONS}`;
  await sql`delete from auth_sessions where user_id = ${userId} and id not in (${newest})`.execute(database);
}
