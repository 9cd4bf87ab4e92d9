/** Replaces stored tokens of sessions and mailed links by their hashes. Sessions and links stay valid. */
import { createHash } from 'node:crypto';
import type { Kysely, Migration } from 'kysely';

interface SignInTables {
  auth_sessions: { id: string; token: string };
  auth_verifications: { id: string; identifier: string };
}

const BATCH = 500;

export const hashedSignInTokens: Migration = {
  async up(db: Kysely<unknown>) {
    const tables = db as Kysely<SignInTables>;
    for (let after = ''; ; ) {
      const rows = await tables.selectFrom('auth_sessions').selectAll().where('id', '>', after).orderBy('id').limit(BATCH).execute();
      for (const { id, token } of rows) {
        const hash = createHash('sha256').update(token).digest('hex');
        await tables.updateTable('auth_sessions').set({ token: hash }).where('id', '=', id).execute();
      }
      const last = rows.at(-1);
      if (last === undefined) break;
      after = last.id;
    }
    for (let after = ''; ; ) {
      const rows = await tables.selectFrom('auth_verifications').selectAll().where('id', '>', after).orderBy('id').limit(BATCH).execute();
      for (const { id, identifier } of rows) {
        // better-auth hashes identifiers in the same way.
        const hash = createHash('sha256').update(identifier).digest('base64url');
        await tables.updateTable('auth_verifications').set({ identifier: hash }).where('id', '=', id).execute();
      }
      const last = rows.at(-1);
      if (last === undefined) break;
      after = last.id;
    }
  },
};
