/**
 * `/console/v1/organisations` creates an organisation. `/console/v1/organisation` manages the organisation that the request acts for: name,
 * members, event log and deletion.
 */
import {
  ConsoleMemberListSchema,
  ConsoleMembershipSchema,
  type ConsoleOrganisation,
  type ConsoleOrganisationEvent,
  ConsoleOrganisationLogSchema,
  ConsoleOrganisationSchema,
  ConsoleRemovedMemberSchema,
  ORGANISATION_ROLES,
  OrganisationNameSchema,
  RequestError,
  UpdateMemberSchema,
} from '@inference/formats';
import Type from 'typebox';
import type { CloseAccount } from '../../accounts/close-account.js';
import type { OrganisationEvent, OrganisationLog } from '../../database/accounts/organisation-log.js';
import {
  dissolveOrganisation,
  MAX_CREATED,
  MAX_MEMBERS,
  MAX_MEMBERSHIPS,
  type MemberOutcome,
  type Membership,
  type OrganisationRepository,
} from '../../database/accounts/organisation-repository.js';
import { ROLE_PERMISSIONS } from '../../database/accounts/organisation-roles.js';
import { readPageQuery, toPage } from '../parameters/pagination.js';
import { isoTime, readTimeSpan } from '../parameters/times.js';
import type { ConsoleApi, ConsoleCall } from '../plugins/console-api.js';
import { allPages, LOG_TYPES, logDownload } from '../plugins/downloads.js';
import { memberBody, membershipBody } from './organisation-bodies.js';

interface OrganisationRoutes {
  readonly organisations: OrganisationRepository;
  readonly log: OrganisationLog;
  readonly closeAccount: CloseAccount;
}

export function addOrganisationRoutes(api: ConsoleApi, routes: OrganisationRoutes): void {
  addOrganisation(api, routes);
  addMembers(api, routes);
  api.add({ method: 'GET', path: '/organisation/log', response: ConsoleOrganisationLogSchema }, async (call) => {
    const { limit, after } = readPageQuery(call.query);
    const events = await routes.log.list(organisationOf(call), limit + 1, after);
    return toPage(events, limit, ({ at, id }) => ({ at, id }), eventBody);
  });
  api.addDownload({ path: '/organisation/log/export', types: LOG_TYPES }, (call) => {
    const id = organisationOf(call);
    const span = readTimeSpan(call.query);
    const pages = allPages((limit, after) => routes.log.list(id, limit, after, span));
    return logDownload('organisation-log', call.query.format, eventBodies(pages), { columns: EVENT_COLUMNS, fields: eventFields });
  });
}

function addOrganisation(api: ConsoleApi, { organisations, closeAccount }: OrganisationRoutes): void {
  const create = {
    method: 'POST',
    path: '/organisations',
    body: OrganisationNameSchema,
    response: ConsoleMembershipSchema,
    status: 201,
  } as const;
  api.add(create, async ({ userId, body }) => {
    const id = await organisations.create(userId, body.name);
    if (id !== null) return membershipBody(await membershipOf(organisations, userId, id));
    const message = `You have created ${MAX_CREATED} organisations, or are a member of ${MAX_MEMBERSHIPS}. Delete or leave one first.`;
    throw new RequestError('conflict', null, message);
  });

  const actingOrganisation = async (call: ConsoleCall<unknown>): Promise<ConsoleOrganisation> => {
    const { account, role } = await membershipOf(organisations, call.userId, organisationOf(call));
    return {
      id: account.id,
      name: account.name,
      created_at: isoTime(account.createdAt),
      member_count: (await organisations.members(account.id)).length,
      max_members: MAX_MEMBERS,
      role,
      roles: ORGANISATION_ROLES.map((name) => ({ role: name, permissions: [...ROLE_PERMISSIONS[name]] })),
    };
  };
  const path = '/organisation';
  api.add({ method: 'GET', path, response: ConsoleOrganisationSchema }, actingOrganisation);
  api.add({ method: 'PATCH', path, body: OrganisationNameSchema, response: ConsoleOrganisationSchema }, async (call) => {
    await organisations.rename(call.userId, organisationOf(call), call.body.name);
    return actingOrganisation(call);
  });
  api.add({ method: 'DELETE', path, response: Type.Object({}) }, async (call) => {
    const id = organisationOf(call);
    await closeAccount(id, async (transaction) => {
      if (!(await dissolveOrganisation(transaction, id, call.userId)))
        throw new RequestError('not_a_member', null, 'You are no longer an owner.');
    });
    return {};
  });
}

function addMembers(api: ConsoleApi, { organisations }: OrganisationRoutes): void {
  const path = '/organisation/members/:user_id';
  api.add({ method: 'GET', path: '/organisation/members', response: ConsoleMemberListSchema }, async (call) => ({
    data: (await organisations.members(organisationOf(call))).map(memberBody),
  }));

  api.add({ method: 'PATCH', path, body: UpdateMemberSchema, response: ConsoleMemberListSchema }, async (call) => {
    const id = organisationOf(call);
    requireDone(await organisations.changeRole(call.userId, id, call.params.user_id ?? '', call.body.role));
    return { data: (await organisations.members(id)).map(memberBody) };
  });

  api.add({ method: 'DELETE', path, response: ConsoleRemovedMemberSchema }, async (call) => {
    const user_id = call.params.user_id ?? '';
    const revokeKeys = flagOf(call.query, 'revoke_keys');
    const { outcome, revokedKeys } = await organisations.remove(call.userId, organisationOf(call), user_id, { revokeKeys });
    requireDone(outcome);
    return { user_id, revoked_keys: revokedKeys };
  });

  api.add({ method: 'POST', path: '/organisation/leave', response: ConsoleRemovedMemberSchema }, async (call) => {
    const { userId } = call;
    const { outcome } = await organisations.remove(userId, organisationOf(call), userId, { revokeKeys: false });
    requireDone(outcome);
    return { user_id: userId, revoked_keys: 0 };
  });
}

async function membershipOf(organisations: OrganisationRepository, userId: string, id: string): Promise<Membership> {
  const membership = await organisations.membership(userId, id);
  if (membership !== null) return membership;
  throw new RequestError('not_a_member', null, 'You are not a member of this organisation.');
}

/** Id of the organisation that the request acts for. Only for routes whose entry in `ACCESS_POLICIES` refuses personal accounts. */
export function organisationOf({ organisation }: Pick<ConsoleCall<unknown>, 'organisation'>): string {
  if (organisation === null) throw new Error('the policy of the route admits personal accounts');
  return organisation.id;
}

function requireDone(outcome: MemberOutcome): void {
  switch (outcome) {
    case 'done':
      return;
    case 'unknown':
      throw new RequestError('not_found', null, 'There is no such member.');
    case 'forbidden':
      throw new RequestError('forbidden', null, 'Only owners can add, change or remove owners.');
    case 'last_owner':
      throw new RequestError('conflict', null, 'An organisation needs at least one owner. Make another member an owner first.');
    default:
      outcome satisfies never;
  }
}

/** Reads a boolean query parameter, by default false. Throws RequestError for other texts. */
function flagOf(query: ConsoleCall<unknown>['query'], name: string): boolean {
  const text = query[name];
  if (text === undefined || text === 'false') return false;
  if (text === 'true') return true;
  throw new RequestError('invalid_request', name, `${name} must be true or false.`);
}

async function* eventBodies(pages: AsyncIterable<readonly OrganisationEvent[]>): AsyncGenerator<ConsoleOrganisationEvent[]> {
  for await (const page of pages) yield page.map(eventBody);
}

const EVENT_COLUMNS = ['at', 'actor_id', 'actor_name', 'actor_email', 'action', 'subject', 'role', 'id'] as const;

function eventFields({ id, at, actor, action, subject, role }: ConsoleOrganisationEvent): (string | null)[] {
  return [at, actor?.user_id ?? null, actor?.name ?? null, actor?.email ?? null, action, subject, role, id];
}

function eventBody({ id, at, actor, action, subject, role }: OrganisationEvent): ConsoleOrganisationEvent {
  return {
    id,
    at: isoTime(at),
    actor: actor === null ? null : { user_id: actor.id, name: actor.name, email: actor.email },
    action,
    subject,
    role,
  };
}
