/**
 * `/console/v1/organisation/invitations`: members invite people to an organisation by e-mail. `/console/v1/invitations`: recipients accept
 * with the token from the e-mail.
 *
 * Responses do not reveal whether an invited address has an account, unless it is a member's. Only the e-mail contains the token.
 */
import {
  type ConsoleInvitation,
  ConsoleInvitationListSchema,
  ConsoleInvitationSchema,
  ConsoleInvitationViewSchema,
  ConsoleMembershipSchema,
  CreateInvitationSchema,
  InvitationTokenSchema,
  RequestError,
} from '@inference/formats';
import Type from 'typebox';
import type { Mailer } from '../../accounts/mailer.js';
import {
  type Invitation,
  type InvitationRepository,
  type InviteOutcome,
  MAX_SENDS,
  type ResendOutcome,
} from '../../database/accounts/invitation-repository.js';
import { MAX_MEMBERS, MAX_MEMBERSHIPS, type OrganisationRepository } from '../../database/accounts/organisation-repository.js';
import type { AttemptCounters } from '../../limits/attempt-counters.js';
import { DAY_MS } from '../../time-units.js';
import { isoTime } from '../parameters/times.js';
import type { ConsoleApi, ConsoleCall } from '../plugins/console-api.js';
import { normalizeEmail } from '../plugins/sign-in-limits.js';
import { membershipBody } from './organisation-bodies.js';
import { organisationOf } from './organisations.js';

/** Per day, for all organisations together. */
const MAX_MAILS_PER_SENDER = 50;
/** Per day, from all organisations together. */
const MAX_MAILS_PER_RECIPIENT = 10;
/** Console page that accepts an invitation. */
const INVITATION_PAGE = '/invitation';

interface InvitationRoutes {
  readonly invitations: InvitationRepository;
  readonly organisations: OrganisationRepository;
  readonly attempts: AttemptCounters;
  readonly mailer: Mailer | null;
  readonly onMailError: (error: unknown) => void;
  readonly now: () => number;
}

export function addInvitationRoutes(api: ConsoleApi, routes: InvitationRoutes): void {
  addManagement(api, routes);
  addAcceptance(api, routes);
}

function addManagement(api: ConsoleApi, { invitations, attempts, mailer, onMailError, now }: InvitationRoutes): void {
  const bySender = attempts.counter('invitations of a person', { maxAttempts: MAX_MAILS_PER_SENDER, windowMs: DAY_MS });
  const byRecipient = attempts.counter('invitations to an address', { maxAttempts: MAX_MAILS_PER_RECIPIENT, windowMs: DAY_MS });
  const path = '/organisation/invitations';

  /** Stores an invitation and sends its e-mail. Counts first, because a resent invitation invalidates the token of the earlier e-mail. */
  const send = async (
    call: ConsoleCall<unknown>,
    email: string,
    store: () => Promise<InviteOutcome | ResendOutcome>,
  ): Promise<ConsoleInvitation> => {
    if (mailer === null) throw new RequestError('not_configured', null, 'This coordinator cannot send mail.');
    const senderRetryAfter = await bySender.count(call.userId);
    if (senderRetryAfter !== null)
      throw new TooManyInvitations(`You can send ${MAX_MAILS_PER_SENDER} invitations per day.`, senderRetryAfter);
    const recipientRetryAfter = await byRecipient.count(email);
    if (recipientRetryAfter !== null) {
      await bySender.refund(call.userId);
      throw new TooManyInvitations(`This address gets at most ${MAX_MAILS_PER_RECIPIENT} invitations per day.`, recipientRetryAfter);
    }
    const refund = async (): Promise<void> => {
      await bySender.refund(call.userId);
      await byRecipient.refund(email);
    };
    const stored = await store().catch(async (error: unknown) => {
      await refund();
      throw error;
    });
    if (stored.kind !== 'sent') {
      await refund();
      throw outcomeError(stored.kind);
    }
    const link = `${call.origin}${INVITATION_PAGE}?token=${stored.token}`;
    mailer.send({ kind: 'invitation', to: stored.email, link }).catch(onMailError);
    return invitationBody(requireInvitation(await invitations.find(organisationOf(call), stored.id)), now());
  };

  api.add({ method: 'GET', path, response: ConsoleInvitationListSchema }, async (call) => ({
    data: (await invitations.list(organisationOf(call))).map((invitation) => invitationBody(invitation, now())),
  }));

  const create = { method: 'POST', path, body: CreateInvitationSchema, response: ConsoleInvitationSchema, status: 201 } as const;
  api.add(create, (call) => {
    const email = normalizeEmail(call.body.email);
    return send(call, email, () => invitations.invite(call.userId, organisationOf(call), email, call.body.role));
  });

  api.add({ method: 'POST', path: `${path}/:id/resend`, response: ConsoleInvitationSchema }, async (call) => {
    const id = call.params.id ?? '';
    const { email } = requireInvitation(await invitations.find(organisationOf(call), id));
    return send(call, email, () => invitations.resend(call.userId, organisationOf(call), id));
  });

  api.add({ method: 'DELETE', path: `${path}/:id`, response: Type.Object({ id: Type.String() }) }, async (call) => {
    const id = call.params.id ?? '';
    const outcome = await invitations.revoke(call.userId, organisationOf(call), id);
    if (outcome !== 'done') throw outcomeError(outcome);
    return { id };
  });
}

function addAcceptance(api: ConsoleApi, { invitations, organisations }: InvitationRoutes): void {
  const view = { method: 'POST', path: '/invitations/view', body: InvitationTokenSchema, response: ConsoleInvitationViewSchema } as const;
  api.add(view, async ({ caller, body }) => {
    const invitation = await invitations.view(body.token);
    if (invitation === null) throw invitationEndedError();
    return {
      organisation_id: invitation.organisationId,
      organisation_name: invitation.organisationName,
      email: invitation.email,
      role: invitation.role,
      invited_by: invitation.invitedBy,
      expires_at: isoTime(invitation.expiresAt),
      is_recipient: invitation.email === caller.email.toLowerCase(),
    };
  });

  const accept = { method: 'POST', path: '/invitations/accept', body: InvitationTokenSchema, response: ConsoleMembershipSchema } as const;
  api.add(accept, async ({ caller, userId, body }) => {
    const outcome = await invitations.accept(body.token, { id: userId, email: caller.email });
    switch (outcome.kind) {
      case 'accepted': {
        const membership = await organisations.membership(userId, outcome.organisationId);
        if (membership === null) throw invitationEndedError();
        return membershipBody(membership);
      }
      case 'unknown':
        throw invitationEndedError();
      case 'other_recipient':
        throw new RequestError('forbidden', null, 'This invitation was sent to another e-mail address. Sign in with that address.');
      case 'too_many':
        throw new RequestError('conflict', null, `You are a member of ${MAX_MEMBERSHIPS} organisations. Leave one first.`);
      default:
        return outcome satisfies never;
    }
  });
}

class TooManyInvitations extends RequestError {
  constructor(
    limit: string,
    readonly retryAfter: number,
  ) {
    super('rate_limit_exceeded', null, `${limit} Try again later.`);
  }
}

function outcomeError(kind: Exclude<(InviteOutcome | ResendOutcome)['kind'], 'sent'>): RequestError {
  switch (kind) {
    case 'forbidden':
      return new RequestError('forbidden', null, 'Your role does not allow this. Only owners manage invitations of owners.');
    case 'unknown':
      return new RequestError('not_found', null, 'There is no such invitation.');
    case 'already_member':
      return new RequestError('conflict', 'email', 'A member has this e-mail address.');
    case 'already_invited':
      return new RequestError('conflict', 'email', 'This address has a pending invitation. Resend or revoke that one.');
    case 'too_many':
      return new RequestError('conflict', null, `An organisation has at most ${MAX_MEMBERS} members and pending invitations.`);
    case 'too_soon':
      return new RequestError('conflict', null, 'This invitation was sent less than a minute ago.');
    case 'too_often':
      return new RequestError('conflict', null, `This invitation was sent ${MAX_SENDS} times. Revoke it and invite again.`);
    default:
      return kind satisfies never;
  }
}

function invitationEndedError(): RequestError {
  return new RequestError('not_found', null, 'This invitation has expired, was revoked, or was accepted before. Ask for a new one.');
}

function requireInvitation(invitation: Invitation | null): Invitation {
  if (invitation === null) throw outcomeError('unknown');
  return invitation;
}

function invitationBody(invitation: Invitation, now: number): ConsoleInvitation {
  return {
    id: invitation.id,
    email: invitation.email,
    role: invitation.role,
    invited_by: invitation.invitedBy,
    sent_at: isoTime(invitation.sentAt),
    expires_at: isoTime(invitation.expiresAt),
    state: invitation.expiresAt > now ? 'pending' : 'expired',
  };
}
