/** `InvitationRepository`: invitations to organisations by e-mail. The token in the mailed link works once; only its SHA-256 is stored. */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { cleanName } from '@inference/protocol';
import type { Database } from '../tables.js';
import { addEvent, type OrganisationAct } from './organisation-log.js';
import { addMember, changeOrganisation, lockOpenAccount, MAX_MEMBERS, mayJoinAnother, roleOf } from './organisation-repository.js';
import { mayManage, type OrganisationRole } from './organisation-roles.js';

export const INVITATION_LIFE_MS = 7 * 24 * 3_600_000;
/** Maximum e-mails per invitation, including the first. */
export const MAX_SENDS = 5;
const MIN_RESEND_MS = 60_000;

export interface Invitation {
  readonly id: string;
  readonly email: string;
  readonly role: OrganisationRole;
  /** Name of the inviting member; null: the member's account was deleted. */
  readonly invitedBy: string | null;
  readonly sentAt: number;
  readonly expiresAt: number;
}

/** Invitation as the recipient sees it. */
interface InvitationView extends Invitation {
  readonly organisationId: string;
  readonly organisationName: string;
}

/** The invitation was stored, and must be mailed with this token. */
interface SentInvitation {
  readonly kind: 'sent';
  readonly id: string;
  readonly email: string;
  readonly token: string;
}

export type InviteOutcome = SentInvitation | { readonly kind: 'forbidden' | 'already_member' | 'already_invited' | 'too_many' };
export type ResendOutcome = SentInvitation | { readonly kind: 'forbidden' | 'unknown' | 'too_soon' | 'too_often' | 'too_many' };
export type AcceptOutcome =
  | { readonly kind: 'accepted'; readonly organisationId: string }
  | { readonly kind: 'unknown' | 'other_recipient' | 'too_many' };

export class InvitationRepository {
  readonly #database: Database;
  readonly #now: () => number;

  constructor(options: { readonly database: Database; readonly now: () => number }) {
    this.#database = options.database;
    this.#now = options.now;
  }

  /** Invitations of an organisation, pending and expired, newest first. */
  async list(organisationId: string): Promise<Invitation[]> {
    const rows = await this.#select()
      .where('invitation.organisation_id', '=', organisationId)
      .orderBy('invitation.sent_at', 'desc')
      .orderBy('invitation.id')
      .execute();
    return rows.map(fromRow);
  }

  async find(organisationId: string, id: string): Promise<Invitation | null> {
    const row = await this.#select()
      .where('invitation.organisation_id', '=', organisationId)
      .where('invitation.id', '=', id)
      .executeTakeFirst();
    return row === undefined ? null : fromRow(row);
  }

  /** Stores an invitation, and removes the organisation's expired ones. */
  async invite(actorId: string, organisationId: string, email: string, role: OrganisationRole): Promise<InviteOutcome> {
    const now = this.#now();
    return changeOrganisation(this.#database, organisationId, async (transaction): Promise<InviteOutcome> => {
      if (!mayManage(await roleOf(transaction, organisationId, actorId), role)) return { kind: 'forbidden' };
      const member = await transaction
        .selectFrom('organisation_members')
        .innerJoin('auth_users', 'auth_users.id', 'organisation_members.user_id')
        .select('user_id')
        .where('organisation_id', '=', organisationId)
        .where('auth_users.email', '=', email)
        .executeTakeFirst();
      if (member !== undefined) return { kind: 'already_member' };
      const pending = await pendingInvitations(transaction, organisationId, now);
      if (pending.some((invitation) => invitation.email === email)) return { kind: 'already_invited' };
      if (!(await hasRoom(transaction, organisationId, pending.length))) return { kind: 'too_many' };
      // Limits the number of stored invitations.
      await transaction
        .deleteFrom('organisation_invitations')
        .where('organisation_id', '=', organisationId)
        .where('expires_at', '<=', now)
        .execute();
      const id = randomUUID();
      const token = newToken();
      await transaction
        .insertInto('organisation_invitations')
        .values({
          id,
          organisation_id: organisationId,
          email,
          role,
          token_hash: hashToken(token),
          invited_by: actorId,
          sent_at: now,
          sent_count: 1,
          expires_at: now + INVITATION_LIFE_MS,
        })
        .execute();
      await this.#log(transaction, { organisationId, actorId, action: 'invitation.sent', subject: email, role });
      return { kind: 'sent', id, email, token };
    });
  }

  /** Gives an invitation a new token and expiry. The link in the earlier mail stops working. */
  async resend(actorId: string, organisationId: string, id: string): Promise<ResendOutcome> {
    const now = this.#now();
    return changeOrganisation(this.#database, organisationId, async (transaction): Promise<ResendOutcome> => {
      const invitation = await transaction
        .selectFrom('organisation_invitations')
        .selectAll()
        .where('organisation_id', '=', organisationId)
        .where('id', '=', id)
        .executeTakeFirst();
      if (invitation === undefined) return { kind: 'unknown' };
      const { email, role } = invitation;
      if (!mayManage(await roleOf(transaction, organisationId, actorId), role)) return { kind: 'forbidden' };
      if (invitation.sent_count >= MAX_SENDS) return { kind: 'too_often' };
      if (now - invitation.sent_at < MIN_RESEND_MS) return { kind: 'too_soon' };
      const others = (await pendingInvitations(transaction, organisationId, now)).filter((pending) => pending.id !== id);
      if (!(await hasRoom(transaction, organisationId, others.length))) return { kind: 'too_many' };
      const token = newToken();
      await transaction
        .updateTable('organisation_invitations')
        .set({
          token_hash: hashToken(token),
          invited_by: actorId,
          sent_at: now,
          sent_count: invitation.sent_count + 1,
          expires_at: now + INVITATION_LIFE_MS,
        })
        .where('id', '=', id)
        .execute();
      await this.#log(transaction, { organisationId, actorId, action: 'invitation.resent', subject: email, role });
      return { kind: 'sent', id, email, token };
    });
  }

  async revoke(actorId: string, organisationId: string, id: string): Promise<'done' | 'unknown' | 'forbidden'> {
    return changeOrganisation(this.#database, organisationId, async (transaction) => {
      const invitation = await transaction
        .selectFrom('organisation_invitations')
        .select(['email', 'role'])
        .where('organisation_id', '=', organisationId)
        .where('id', '=', id)
        .executeTakeFirst();
      if (invitation === undefined) return 'unknown';
      if (!mayManage(await roleOf(transaction, organisationId, actorId), invitation.role)) return 'forbidden';
      await transaction.deleteFrom('organisation_invitations').where('id', '=', id).execute();
      await this.#log(transaction, { organisationId, actorId, action: 'invitation.revoked', subject: invitation.email });
      return 'done';
    });
  }

  /** Finds the invitation of a mailed token. Null: unknown, used, revoked or expired, or the organisation is closed. */
  async view(token: string): Promise<InvitationView | null> {
    const row = await this.#select()
      .innerJoin('accounts', 'accounts.id', 'invitation.organisation_id')
      .select(['invitation.organisation_id', 'accounts.name as organisation_name'])
      .where('invitation.token_hash', '=', hashToken(token))
      .where('invitation.expires_at', '>', this.#now())
      .where('accounts.deleted_at', 'is', null)
      .executeTakeFirst();
    if (row === undefined) return null;
    return { ...fromRow(row), organisationId: row.organisation_id, organisationName: cleanName(row.organisation_name) };
  }

  /** Makes the signed-in user a member, and removes the invitation. */
  async accept(token: string, user: { readonly id: string; readonly email: string }): Promise<AcceptOutcome> {
    const hash = hashToken(token);
    const now = this.#now();
    return this.#database.transaction().execute(async (transaction): Promise<AcceptOutcome> => {
      const stored = await transaction
        .selectFrom('organisation_invitations')
        .select('organisation_id')
        .where('token_hash', '=', hash)
        .executeTakeFirst();
      if (stored === undefined) return { kind: 'unknown' };
      const organisationId = stored.organisation_id;
      // Locks the user before the organisation, as the deletion of an account does. The opposite order could deadlock.
      if (!(await lockOpenAccount(transaction, user.id)) || !(await lockOpenAccount(transaction, organisationId)))
        return { kind: 'unknown' };
      const invitation = await transaction
        .selectFrom('organisation_invitations')
        .selectAll()
        .where('token_hash', '=', hash)
        .where('expires_at', '>', now)
        .executeTakeFirst();
      if (invitation === undefined) return { kind: 'unknown' };
      if (invitation.email !== user.email.toLowerCase()) return { kind: 'other_recipient' };
      const isMember = (await roleOf(transaction, organisationId, user.id)) !== null;
      if (!isMember && !(await mayJoinAnother(transaction, user.id))) return { kind: 'too_many' };
      await transaction.deleteFrom('organisation_invitations').where('id', '=', invitation.id).execute();
      if (isMember) return { kind: 'accepted', organisationId };
      const { role } = invitation;
      await addMember(transaction, { organisationId, userId: user.id, role, now });
      await this.#log(transaction, { organisationId, actorId: user.id, action: 'member.joined', subject: invitation.email, role });
      return { kind: 'accepted', organisationId };
    });
  }

  #select() {
    return this.#database
      .selectFrom('organisation_invitations as invitation')
      .leftJoin('auth_users', 'auth_users.id', 'invitation.invited_by')
      .select(['invitation.id', 'invitation.email', 'invitation.role', 'invitation.sent_at', 'invitation.expires_at'])
      .select('auth_users.name as inviter');
  }

  #log(transaction: Database, act: OrganisationAct): Promise<void> {
    return addEvent(transaction, act, this.#now());
  }
}

interface InvitationRow {
  readonly id: string;
  readonly email: string;
  readonly role: OrganisationRole;
  readonly sent_at: number;
  readonly expires_at: number;
  readonly inviter: string | null;
}

function fromRow(row: InvitationRow): Invitation {
  return {
    id: row.id,
    email: row.email,
    role: row.role,
    invitedBy: row.inviter === null ? null : cleanName(row.inviter),
    sentAt: row.sent_at,
    expiresAt: row.expires_at,
  };
}

function pendingInvitations(transaction: Database, organisationId: string, now: number): Promise<{ id: string; email: string }[]> {
  return transaction
    .selectFrom('organisation_invitations')
    .select(['id', 'email'])
    .where('organisation_id', '=', organisationId)
    .where('expires_at', '>', now)
    .execute();
}

/** Whether the organisation may have one more member, if all `pending` invitations are accepted. */
async function hasRoom(transaction: Database, organisationId: string, pending: number): Promise<boolean> {
  const members = await transaction
    .selectFrom('organisation_members')
    .select('user_id')
    .where('organisation_id', '=', organisationId)
    .limit(MAX_MEMBERS)
    .execute();
  return members.length + pending < MAX_MEMBERS;
}

/** 256 random bits in base64url. */
function newToken(): string {
  return randomBytes(32).toString('base64url');
}

function hashToken(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}
