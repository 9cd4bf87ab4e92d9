/**
 * `OrganisationRepository`: organisations and their members.
 *
 * An organisation that is not closed has at least one owner. Changes of members lock the organisation's account row before they read roles.
 * Without the lock, the last two owners could leave at the same moment.
 */
import { cleanName } from '@inference/protocol';
import { sql } from 'kysely';
import type { Database } from '../tables.js';
import { type Account, accountOfRow, lockAccount } from './account-repository.js';
import type { ApiKeyCache } from './api-key-cache.js';
import { createAccount, lockKeysOf, revokeKey } from './api-key-repository.js';
import { addEvent, type OrganisationAct } from './organisation-log.js';
import { hasPermission, mayManage, type OrganisationRole, rankOf } from './organisation-roles.js';

/** Maximum organisations created by one person, without deleted ones that are older than {@link CREATED_WINDOW_MS}. */
export const MAX_CREATED = 10;
const CREATED_WINDOW_MS = 24 * 3_600_000;
export const MAX_MEMBERSHIPS = 50;
/** Maximum of members and pending invitations together, of one organisation. */
export const MAX_MEMBERS = 100;

export interface Membership {
  readonly account: Account;
  readonly role: OrganisationRole;
}

export interface Member {
  readonly userId: string;
  readonly name: string;
  readonly email: string;
  readonly role: OrganisationRole;
  readonly joinedAt: number;
  /** Unrevoked API keys that the member created for the organisation. */
  readonly keyCount: number;
}

/**
 * Outcome of a change of a member.
 *
 * `unknown`: the user is no member. `forbidden`: the actor's role does not allow the change. `last_owner`: no owner would remain.
 */
export type MemberOutcome = 'done' | 'unknown' | 'forbidden' | 'last_owner';

export class OrganisationRepository {
  readonly #database: Database;
  readonly #apiKeyCache: Pick<ApiKeyCache, 'changed'>;
  readonly #now: () => number;

  constructor(options: { readonly database: Database; readonly apiKeyCache: Pick<ApiKeyCache, 'changed'>; readonly now: () => number }) {
    this.#database = options.database;
    this.#apiKeyCache = options.apiKeyCache;
    this.#now = options.now;
  }

  /** Creates an organisation owned by the user. Resolves to its id; null: the user has created or joined too many, or is closed. */
  async create(userId: string, name: string): Promise<string | null> {
    const now = this.#now();
    return this.#database.transaction().execute(async (transaction) => {
      if (!(await lockOpenAccount(transaction, userId)) || !(await mayJoinAnother(transaction, userId))) return null;
      const created = await transaction
        .selectFrom('organisations')
        .innerJoin('accounts', 'accounts.id', 'organisations.account_id')
        .select('organisations.account_id')
        .where('organisations.created_by', '=', userId)
        .where((where) =>
          where.or([where('accounts.deleted_at', 'is', null), where('organisations.created_at', '>', now - CREATED_WINDOW_MS)]),
        )
        .limit(MAX_CREATED)
        .execute();
      if (created.length >= MAX_CREATED) return null;
      const id = await createAccount(transaction, name, now);
      await transaction.insertInto('organisations').values({ account_id: id, created_by: userId, created_at: now }).execute();
      await addMember(transaction, { organisationId: id, userId, role: 'owner', now });
      await addEvent(transaction, { organisationId: id, actorId: userId, action: 'organisation.created', subject: name }, now);
      return id;
    });
  }

  /** Membership of a user; null: not a member, or the organisation is closed. */
  async membership(userId: string, organisationId: string): Promise<Membership | null> {
    const row = await this.#memberships(userId).where('organisation_members.organisation_id', '=', organisationId).executeTakeFirst();
    return row === undefined ? null : { account: accountOfRow(row), role: row.role };
  }

  /** Memberships of a user in organisations that are not closed, ordered by name. */
  async memberships(userId: string): Promise<Membership[]> {
    const rows = await this.#memberships(userId).orderBy('accounts.name').orderBy('accounts.id').limit(MAX_MEMBERSHIPS).execute();
    return rows.map((row) => ({ account: accountOfRow(row), role: row.role }));
  }

  #memberships(userId: string) {
    return this.#database
      .selectFrom('organisation_members')
      .innerJoin('accounts', 'accounts.id', 'organisation_members.organisation_id')
      .selectAll('accounts')
      .select('organisation_members.role')
      .where('organisation_members.user_id', '=', userId)
      .where('accounts.deleted_at', 'is', null);
  }

  /** Members, ordered by role (owners first), then by the time of joining. */
  async members(organisationId: string): Promise<Member[]> {
    const rows = await this.#database
      .selectFrom('organisation_members as member')
      .innerJoin('auth_users', 'auth_users.id', 'member.user_id')
      .select(['member.user_id', 'member.role', 'member.joined_at', 'auth_users.name', 'auth_users.email'])
      .select(({ selectFrom }) =>
        selectFrom('api_keys')
          .select(sql<number>`count(*)`.as('count'))
          .where('api_keys.account_id', '=', organisationId)
          .whereRef('api_keys.created_by', '=', 'member.user_id')
          .where('api_keys.made_for', 'is', null)
          .where('api_keys.revoked_at', 'is', null)
          .as('key_count'),
      )
      .where('member.organisation_id', '=', organisationId)
      .orderBy('member.joined_at')
      .orderBy('member.user_id')
      .execute();
    return rows
      .map((row) => ({
        userId: row.user_id,
        name: cleanName(row.name),
        email: row.email,
        role: row.role,
        joinedAt: row.joined_at,
        keyCount: Number(row.key_count ?? 0),
      }))
      .sort((a, b) => rankOf(a.role) - rankOf(b.role));
  }

  async rename(actorId: string, organisationId: string, name: string): Promise<void> {
    await this.#change(organisationId, async (transaction) => {
      await transaction.updateTable('accounts').set({ name }).where('id', '=', organisationId).execute();
      await this.#log(transaction, { organisationId, actorId, action: 'organisation.renamed', subject: name });
    });
  }

  /** Changes a member's role. Keys for the console's playground are revoked if the new role may not create keys. */
  async changeRole(actorId: string, organisationId: string, userId: string, role: OrganisationRole): Promise<MemberOutcome> {
    let revoked: readonly MemberKey[] = [];
    const outcome = await this.#change(organisationId, async (transaction): Promise<MemberOutcome> => {
      const current = await roleOf(transaction, organisationId, userId);
      if (current === null) return 'unknown';
      if (!mayManage(await roleOf(transaction, organisationId, actorId), current, role)) return 'forbidden';
      if (current === role) return 'done';
      if (current === 'owner' && (await ownerCount(transaction, organisationId)) === 1) return 'last_owner';
      await transaction
        .updateTable('organisation_members')
        .set({ role })
        .where('organisation_id', '=', organisationId)
        .where('user_id', '=', userId)
        .execute();
      await removeForbiddenInvitations(transaction, organisationId, userId, role);
      if (!hasPermission(role, 'keys.write')) {
        revoked = await this.#revokeKeys(transaction, organisationId, userId, { onlyPlayground: true });
      }
      const subject = await emailOf(transaction, userId);
      await this.#log(transaction, { organisationId, actorId, action: 'member.role_changed', subject, role });
      return 'done';
    });
    for (const { id } of revoked) this.#apiKeyCache.changed(id);
    return outcome;
  }

  /**
   * Removes a member, or lets a member leave (`actorId` equal to `userId`). Always revokes the member's playground keys.
   *
   * @param options.revokeKeys Also revokes API keys that the member created.
   * @returns `revokedKeys`: count of revoked API keys, without playground keys.
   */
  async remove(
    actorId: string,
    organisationId: string,
    userId: string,
    { revokeKeys }: { readonly revokeKeys: boolean },
  ): Promise<{ readonly outcome: MemberOutcome; readonly revokedKeys: number }> {
    let revoked: readonly MemberKey[] = [];
    const outcome = await this.#change(organisationId, async (transaction): Promise<MemberOutcome> => {
      const current = await roleOf(transaction, organisationId, userId);
      if (current === null) return 'unknown';
      const isLeaving = actorId === userId;
      if (!isLeaving && !mayManage(await roleOf(transaction, organisationId, actorId), current)) return 'forbidden';
      if (current === 'owner' && (await ownerCount(transaction, organisationId)) === 1) return 'last_owner';
      revoked = await this.#revokeKeys(transaction, organisationId, userId, { onlyPlayground: !revokeKeys });
      await removeMember(transaction, organisationId, userId);
      const subject = isLeaving ? null : await emailOf(transaction, userId);
      await this.#log(transaction, { organisationId, actorId, action: isLeaving ? 'member.left' : 'member.removed', subject });
      return 'done';
    });
    if (outcome === 'done') for (const { id } of revoked) this.#apiKeyCache.changed(id);
    return { outcome, revokedKeys: revoked.filter(({ made_for }) => made_for === null).length };
  }

  async #revokeKeys(
    transaction: Database,
    organisationId: string,
    userId: string,
    { onlyPlayground }: { readonly onlyPlayground: boolean },
  ): Promise<readonly MemberKey[]> {
    const unrevoked = await unrevokedKeysOf(transaction, organisationId, userId);
    const keys = unrevoked.filter(({ made_for }) => made_for === 'playground' || !onlyPlayground);
    for (const { id } of keys) await revokeKey(transaction, id, this.#now());
    return keys;
  }

  #change<T>(organisationId: string, work: (transaction: Database) => Promise<T>): Promise<T> {
    return changeOrganisation(this.#database, organisationId, work);
  }

  #log(transaction: Database, act: OrganisationAct): Promise<void> {
    return addEvent(transaction, act, this.#now());
  }
}

/** Runs `work` in a transaction that locks the organisation, so that changes of its members and invitations are serialised. */
export function changeOrganisation<T>(database: Database, organisationId: string, work: (transaction: Database) => Promise<T>): Promise<T> {
  return database.transaction().execute(async (transaction) => {
    await lockAccount(transaction, organisationId);
    return work(transaction);
  });
}

/** Locks an account row until the transaction ends. False: the account is closed or does not exist. */
export async function lockOpenAccount(transaction: Database, accountId: string): Promise<boolean> {
  await lockAccount(transaction, accountId);
  const row = await transaction.selectFrom('accounts').select('deleted_at').where('id', '=', accountId).executeTakeFirst();
  return row !== undefined && row.deleted_at === null;
}

/** Whether the user may join one more organisation. The caller has locked the user's account row. */
export async function mayJoinAnother(transaction: Database, userId: string): Promise<boolean> {
  const joined = await transaction
    .selectFrom('organisation_members')
    .select('organisation_id')
    .where('user_id', '=', userId)
    .limit(MAX_MEMBERSHIPS)
    .execute();
  return joined.length < MAX_MEMBERSHIPS;
}

export async function addMember(
  transaction: Database,
  member: { readonly organisationId: string; readonly userId: string; readonly role: OrganisationRole; readonly now: number },
): Promise<void> {
  const { organisationId: organisation_id, userId: user_id, role, now: joined_at } = member;
  await transaction.insertInto('organisation_members').values({ organisation_id, user_id, role, joined_at }).execute();
}

/** Role of a user; null: no member. */
export async function roleOf(transaction: Database, organisationId: string, userId: string): Promise<OrganisationRole | null> {
  const row = await transaction
    .selectFrom('organisation_members')
    .select('role')
    .where('organisation_id', '=', organisationId)
    .where('user_id', '=', userId)
    .executeTakeFirst();
  return row?.role ?? null;
}

/** An account cannot be closed, because the user is the only owner of the organisations with these names. */
export class SoleOwnerError extends Error {
  constructor(readonly organisations: readonly string[]) {
    super('the user is the only owner of an organisation');
    this.name = 'SoleOwnerError';
  }
}

/**
 * Removes a user from all organisations. Call in the transaction that closes the user's account, with its row locked.
 *
 * @throws {SoleOwnerError} The user is the only owner of an organisation.
 */
export async function leaveAllOrganisations(transaction: Database, userId: string, now: number): Promise<void> {
  const joined = await transaction
    .selectFrom('organisation_members')
    .select('organisation_id')
    .where('user_id', '=', userId)
    .orderBy('organisation_id')
    .execute();
  const withoutOwner: string[] = [];
  for (const { organisation_id } of joined) {
    await lockAccount(transaction, organisation_id);
    const role = await roleOf(transaction, organisation_id, userId);
    if (role === null) continue;
    if (role === 'owner' && (await ownerCount(transaction, organisation_id)) === 1) {
      withoutOwner.push(organisation_id);
      continue;
    }
    await removeMember(transaction, organisation_id, userId);
    await addEvent(transaction, { organisationId: organisation_id, actorId: userId, action: 'member.left' }, now);
  }
  if (withoutOwner.length === 0) return revokePlaygroundKeys(transaction, userId, now);
  const rows = await transaction.selectFrom('accounts').select('name').where('id', 'in', withoutOwner).orderBy('name').execute();
  throw new SoleOwnerError(rows.map(({ name }) => cleanName(name)));
}

/** Revokes all playground keys of a user. Coordinators may accept a cached key for some seconds more. */
async function revokePlaygroundKeys(transaction: Database, userId: string, now: number): Promise<void> {
  await lockKeysOf(transaction, userId);
  await transaction
    .updateTable('api_keys')
    .set({ revoked_at: now })
    .where('created_by', '=', userId)
    .where('made_for', '=', 'playground')
    .where('revoked_at', 'is', null)
    .execute();
}

/**
 * Removes members, invitations and log of an organisation. Call in the transaction that closes the organisation's account.
 *
 * @returns False, and removes nothing, if the actor is no owner.
 */
export async function dissolveOrganisation(transaction: Database, organisationId: string, actorId: string): Promise<boolean> {
  if ((await roleOf(transaction, organisationId, actorId)) !== 'owner') return false;
  for (const table of ['organisation_members', 'organisation_invitations', 'organisation_events'] as const) {
    await transaction.deleteFrom(table).where('organisation_id', '=', organisationId).execute();
  }
  return true;
}

async function ownerCount(transaction: Database, organisationId: string): Promise<number> {
  const owners = await transaction
    .selectFrom('organisation_members')
    .select('user_id')
    .where('organisation_id', '=', organisationId)
    .where('role', '=', 'owner')
    .execute();
  return owners.length;
}

async function removeMember(transaction: Database, organisationId: string, userId: string): Promise<void> {
  await transaction
    .deleteFrom('organisation_members')
    .where('organisation_id', '=', organisationId)
    .where('user_id', '=', userId)
    .execute();
  await removeForbiddenInvitations(transaction, organisationId, userId, null);
}

/**
 * Removes invitations sent by a member whose new role may not send them. `newRole`: null for a removed member.
 *
 * Otherwise a member could regain the old role by inviting a second e-mail address beforehand.
 */
async function removeForbiddenInvitations(
  transaction: Database,
  organisationId: string,
  userId: string,
  newRole: OrganisationRole | null,
): Promise<void> {
  const sent = await transaction
    .selectFrom('organisation_invitations')
    .select(['id', 'role'])
    .where('organisation_id', '=', organisationId)
    .where('invited_by', '=', userId)
    .execute();
  for (const { id, role } of sent) {
    if (!mayManage(newRole, role)) await transaction.deleteFrom('organisation_invitations').where('id', '=', id).execute();
  }
}

interface MemberKey {
  readonly id: string;
  readonly made_for: 'playground' | null;
}

/** In the order in which `recordKeyUse` locks the rows, to avoid deadlocks of their revocation. */
function unrevokedKeysOf(transaction: Database, organisationId: string, userId: string): Promise<MemberKey[]> {
  return transaction
    .selectFrom('api_keys')
    .select(['id', 'made_for'])
    .where('account_id', '=', organisationId)
    .where('created_by', '=', userId)
    .where('revoked_at', 'is', null)
    .orderBy('id')
    .execute();
}

async function emailOf(transaction: Database, userId: string): Promise<string | null> {
  const row = await transaction.selectFrom('auth_users').select('email').where('id', '=', userId).executeTakeFirst();
  return row?.email ?? null;
}
