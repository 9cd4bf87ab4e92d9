/** Organisations over HTTP: invitations, roles on every route, removal, the last owner, and deletion. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type ConsoleInvitation,
  ConsoleInvitationListSchema,
  ConsoleInvitationViewSchema,
  type ConsoleMember,
  ConsoleMemberListSchema,
  type ConsoleMembership,
  ConsoleMembershipSchema,
  type ConsoleOrganisationEvent,
  ConsoleOrganisationLogSchema,
  ConsoleOrganisationSchema,
  ORGANISATION_ROLES,
  type OrganisationRole,
} from '@inference/formats';
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { addEvent, MAX_EVENTS, OrganisationLog } from '../../../src/database/accounts/organisation-log.js';
import { MAX_CREATED } from '../../../src/database/accounts/organisation-repository.js';
import { hasPermission, ROLE_PERMISSIONS } from '../../../src/database/accounts/organisation-roles.js';
import { ACCESS_POLICIES, policyOf } from '../../../src/routes/plugins/console-access-policy.js';
import { Browser, PASSWORD } from '../../support/console-client.js';
import { describeDatabases, startHarnessOn } from '../../support/databases.js';
import { errorOf, type Harness, NO_RATE_LIMITS } from '../../support/harness.js';

async function bodyAs<T>(schema: TSchema, answer: Response): Promise<T> {
  const body: unknown = await answer.json();
  expect([...Compile(schema).Errors(body)]).toEqual([]);
  return body as T;
}

interface Person {
  readonly browser: Browser;
  readonly id: string;
  readonly email: string;
}

describeDatabases('organisations', (fresh) => {
  let harness: Harness;
  let now = 1_800_000_000_000;
  let people = 0;

  beforeAll(async () => {
    harness = await startHarnessOn(fresh, { now: () => now++, config: { rateLimits: NO_RATE_LIMITS } });
  });
  afterAll(() => harness.close());

  const newPerson = async (email = `member-${++people}@example.com`): Promise<Person> => {
    const browser = new Browser(harness.url);
    expect((await browser.signUp(email)).status).toBe(200);
    const { id } = (await (await browser.get('/console/v1/me')).json()) as { id: string };
    return { browser, id, email };
  };
  const createOrganisation = async (owner: Person, name = 'Acme'): Promise<string> => {
    const answer = await owner.browser.post('/console/v1/organisations', { name });
    expect(answer.status).toBe(201);
    return (await bodyAs<ConsoleMembership>(ConsoleMembershipSchema, answer)).id;
  };
  /** Sends a request that selects the organisation with the header `x-account-id`. */
  const act = (person: Person, organisation: string, method: string, path: string, body?: unknown): Promise<Response> =>
    person.browser.send(method, path, body ?? (method === 'GET' || method === 'DELETE' ? undefined : {}), { 'x-account-id': organisation });
  const ofOrganisation = (person: Person, organisation: string, method: string, path: string, body?: unknown): Promise<Response> =>
    act(person, organisation, method, `/console/v1/organisation${path}`, body);
  const mailedTokens = (email: string): string[] =>
    harness.log
      .map((line) => JSON.parse(line) as { kind?: string; to?: string; link?: string })
      .flatMap(({ kind, to, link }) =>
        kind === 'invitation' && to === email ? [new URL(link ?? '').searchParams.get('token') ?? ''] : [],
      );
  const invite = async (owner: Person, organisation: string, email: string, role: OrganisationRole): Promise<ConsoleInvitation> => {
    const answer = await ofOrganisation(owner, organisation, 'POST', '/invitations', { email, role });
    expect([answer.status, await answer.clone().text()]).toEqual([201, expect.any(String)]);
    return (await answer.json()) as ConsoleInvitation;
  };
  const join_ = async (owner: Person, organisation: string, role: OrganisationRole): Promise<Person> => {
    const person = await newPerson();
    await invite(owner, organisation, person.email, role);
    const token = mailedTokens(person.email).at(-1);
    expect((await person.browser.post('/console/v1/invitations/accept', { token })).status).toBe(200);
    return person;
  };
  const membersOf = async (person: Person, organisation: string): Promise<ConsoleMember[]> =>
    (await bodyAs<{ data: ConsoleMember[] }>(ConsoleMemberListSchema, await ofOrganisation(person, organisation, 'GET', '/members'))).data;
  const eventsOf = async (person: Person, organisation: string): Promise<ConsoleOrganisationEvent[]> => {
    const answer = await ofOrganisation(person, organisation, 'GET', '/log?limit=200');
    return (await bodyAs<{ data: ConsoleOrganisationEvent[] }>(ConsoleOrganisationLogSchema, answer)).data;
  };

  it('invite a person, who accepts once with the invited address, and acts for the organisation at once', async () => {
    const owner = await newPerson();
    const id = await createOrganisation(owner);
    const grace = await newPerson();
    const stranger = await newPerson();
    const invitation = await invite(owner, id, grace.email.toUpperCase(), 'developer');
    expect(invitation).toMatchObject({ email: grace.email, role: 'developer', state: 'pending', invited_by: 'Ada' });
    const [token = ''] = mailedTokens(grace.email);
    expect(token).toMatch(/^[\w-]{43}$/);
    const stored = await harness.app.database.selectFrom('organisation_invitations').selectAll().where('id', '=', invitation.id).execute();
    expect(JSON.stringify(stored)).not.toContain(token);

    const view = await bodyAs(ConsoleInvitationViewSchema, await stranger.browser.post('/console/v1/invitations/view', { token }));
    expect(view).toMatchObject({ organisation_name: 'Acme', is_recipient: false });
    expect((await stranger.browser.post('/console/v1/invitations/accept', { token })).status).toBe(403);
    expect((await act(grace, id, 'GET', '/console/v1/keys')).status).toBe(403);
    expect(await errorOf(await act(grace, id, 'GET', '/console/v1/keys'))).toMatchObject({ code: 'not_a_member' });

    const accepted = await Promise.all([1, 2].map(() => grace.browser.post('/console/v1/invitations/accept', { token })));
    expect(accepted.map(({ status }) => status).sort()).toEqual([200, 404]);
    expect((await membersOf(grace, id)).map(({ email, role }) => [email, role])).toEqual([
      [owner.email, 'owner'],
      [grace.email, 'developer'],
    ]);
    const me = (await (await grace.browser.get('/console/v1/session')).json()) as { account: { organisations: ConsoleMembership[] } };
    expect(me.account.organisations).toMatchObject([{ id, name: 'Acme', role: 'developer', permissions: ROLE_PERMISSIONS.developer }]);
  });

  it('answer invitations alike, with or without an account, and bound them', async () => {
    const owner = await newPerson();
    const id = await createOrganisation(owner);
    const known = await newPerson();
    const shapeOf = async (email: string): Promise<unknown> => {
      const { id: _id, email: _email, sent_at: _sent, expires_at: _expires, ...rest } = await invite(owner, id, email, 'viewer');
      return rest;
    };
    expect(await shapeOf(known.email)).toEqual(await shapeOf('nobody@elsewhere.example'));
    const send = (body: unknown): Promise<Response> => ofOrganisation(owner, id, 'POST', '/invitations', body);
    expect(await errorOf(await send({ email: known.email, role: 'viewer' }))).toMatchObject({ code: 'conflict', param: 'email' });
    expect(await errorOf(await send({ email: owner.email, role: 'viewer' }))).toMatchObject({ code: 'conflict', param: 'email' });
    expect(await errorOf(await send({ email: 'x', role: 'viewer' }))).toMatchObject({ code: 'invalid_request', param: 'email' });
    expect(await errorOf(await send({ email: 'x@y', role: 'king' }))).toMatchObject({ code: 'invalid_request', param: 'role' });

    const list = await bodyAs<{ data: ConsoleInvitation[] }>(
      ConsoleInvitationListSchema,
      await ofOrganisation(owner, id, 'GET', '/invitations'),
    );
    const one = list.data.find(({ email }) => email === known.email)?.id ?? '';
    const resend = (): Promise<Response> => ofOrganisation(owner, id, 'POST', `/invitations/${one}/resend`);
    expect((await resend()).status).toBe(409);
    const [first = ''] = mailedTokens(known.email);
    for (let sent = 2; sent <= 5; sent++) {
      now += 61_000;
      expect((await resend()).status).toBe(200);
    }
    now += 61_000;
    expect(await (await resend()).text()).toContain('was sent 5 times');
    expect((await known.browser.post('/console/v1/invitations/accept', { token: first })).status).toBe(404);
    const last = mailedTokens(known.email).at(-1);
    now += 7 * 24 * 3_600_000;
    expect((await known.browser.post('/console/v1/invitations/accept', { token: last })).status).toBe(404);
    expect((await ofOrganisation(owner, id, 'DELETE', `/invitations/${one}`)).status).toBe(200);
    expect((await ofOrganisation(owner, id, 'DELETE', `/invitations/${one}`)).status).toBe(404);
  });

  it('mail an address ten times a day at most, and refuse more before a link ends', async () => {
    const owner = await newPerson();
    const id = await createOrganisation(owner);
    const email = 'often@elsewhere.example';
    for (let sent = 1; sent <= 9; sent++) {
      const invitation = await invite(owner, id, email, 'viewer');
      expect((await ofOrganisation(owner, id, 'DELETE', `/invitations/${invitation.id}`)).status).toBe(200);
    }
    const last = await invite(owner, id, email, 'viewer');
    const [token] = mailedTokens(email).slice(-1);
    now += 61_000;
    const refused = await ofOrganisation(owner, id, 'POST', `/invitations/${last.id}/resend`);
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    const person = await newPerson();
    expect((await person.browser.post('/console/v1/invitations/view', { token })).status).toBe(200);
    expect(mailedTokens(email)).toHaveLength(10);
  });

  it('have a balance, keys and usage of their own, and keys name their creator', async () => {
    const owner = await newPerson();
    const id = await createOrganisation(owner);
    const developer = await join_(owner, id, 'developer');
    const deposit = await act(owner, id, 'POST', '/console/v1/deposits/development', { amount_micro_usd: 5_000_000 });
    expect(deposit.status).toBe(201);
    const balanceOf = async (person: Person, organisation?: string): Promise<number> => {
      const answer = await (organisation === undefined
        ? person.browser.get('/console/v1/balance')
        : act(person, organisation, 'GET', '/console/v1/balance'));
      return ((await answer.json()) as { balance_micro_usd: number }).balance_micro_usd;
    };
    expect([await balanceOf(developer, id), await balanceOf(owner), await balanceOf(developer)]).toEqual([5_000_000, 0, 0]);
    const refused = await act(developer, id, 'POST', '/console/v1/deposits/development', { amount_micro_usd: 5_000_000 });
    expect(await errorOf(refused)).toMatchObject({ code: 'forbidden', message: expect.stringContaining('developer') });

    const created = await act(developer, id, 'POST', '/console/v1/keys', { name: 'build server' });
    const { key, secret } = (await created.json()) as { key: { id: string; created_by: unknown }; secret: string };
    expect(key.created_by).toEqual({ user_id: developer.id, name: 'Ada' });
    const balance = await harness.get('/v1/payments/balance', secret);
    expect(await balance.text()).toContain('"balance_micro_usd":5000000');
    expect((await (await developer.browser.get('/console/v1/keys')).json()) as object).toEqual({ data: [], next_cursor: null });
    // A download link cannot send `x-account-id`, so it selects the organisation with a query parameter.
    expect((await developer.browser.get(`/console/v1/usage.csv?account_id=${id}`)).status).toBe(200);
    expect((await (await newPerson()).browser.get(`/console/v1/usage.csv?account_id=${id}`)).status).toBe(403);

    expect((await membersOf(owner, id)).find(({ user_id }) => user_id === developer.id)?.key_count).toBe(1);
    const playground = await act(developer, id, 'POST', '/console/v1/playground-key');
    const { secret: playgroundKey } = (await playground.json()) as { secret: string };
    expect((await harness.get('/v1/models', playgroundKey)).status).toBe(200);
    expect((await ofOrganisation(owner, id, 'DELETE', `/members/${developer.id}`)).status).toBe(200);
    // Removal takes effect at once. It ends the member's playground key; the organisation's keys keep working.
    expect((await act(developer, id, 'GET', '/console/v1/balance')).status).toBe(403);
    expect((await harness.get('/v1/models', playgroundKey)).status).toBe(401);
    expect((await harness.get('/v1/models', secret)).status).toBe(200);

    const second = await join_(owner, id, 'developer');
    const secondKey = (await (await act(second, id, 'POST', '/console/v1/keys', { name: 'laptop' })).json()) as { secret: string };
    const removed = await ofOrganisation(owner, id, 'DELETE', `/members/${second.id}?revoke_keys=true`);
    expect(await removed.json()).toEqual({ user_id: second.id, revoked_keys: 1 });
    expect((await harness.get('/v1/models', secondKey.secret)).status).toBe(401);

    const events = await eventsOf(owner, id);
    expect(events.slice(0, 3).map(({ action, subject }) => [action, subject])).toEqual([
      ['member.removed', second.email],
      ['key.created', 'laptop'],
      ['member.joined', second.email],
    ]);
    expect(events.map(({ action }) => action)).toContain('deposit.started');
    const keyEvent = events.find(({ subject }) => subject === 'build server');
    expect(keyEvent).toMatchObject({ action: 'key.created', actor: { user_id: developer.id, email: developer.email } });
  });

  it('keep at least one owner, under concurrent changes', async () => {
    const first = await newPerson();
    const id = await createOrganisation(first);
    const leave = (person: Person): Promise<Response> => ofOrganisation(person, id, 'POST', '/leave');
    expect(await errorOf(await leave(first))).toMatchObject({ code: 'conflict', message: expect.stringContaining('at least one owner') });
    const second = await join_(first, id, 'owner');
    const demote = (actor: Person, person: Person): Promise<Response> =>
      ofOrganisation(actor, id, 'PATCH', `/members/${person.id}`, { role: 'admin' });
    const answers = await Promise.all([demote(first, second), demote(second, first), leave(first), leave(second)]);
    expect(answers.every(({ status }) => status < 500)).toBe(true);
    const owners = await harness.app.database
      .selectFrom('organisation_members')
      .select('user_id')
      .where('organisation_id', '=', id)
      .where('role', '=', 'owner')
      .execute();
    expect(owners).toHaveLength(1);
    const owner = owners[0]?.user_id === first.id ? first : second;
    const admin = await join_(owner, id, 'admin');
    for (const [method, path, body] of [
      ['PATCH', `/members/${owner.id}`, { role: 'viewer' }],
      ['PATCH', `/members/${admin.id}`, { role: 'owner' }],
      ['DELETE', `/members/${owner.id}`, undefined],
      ['POST', '/invitations', { email: 'second-address@example.com', role: 'owner' }],
    ] as const) {
      expect(await errorOf(await ofOrganisation(admin, id, method, path, body))).toMatchObject({ code: 'forbidden' });
    }

    // The only owner cannot delete the personal account; another member can.
    const deletion = (person: Person): Promise<Response> => person.browser.post('/console/auth/delete-user', { password: PASSWORD });
    const refused = await deletion(owner);
    expect([refused.status, await errorOf(refused)]).toEqual([
      409,
      expect.objectContaining({ message: expect.stringContaining('You are the only owner of Acme.') }),
    ]);
    expect((await owner.browser.get('/console/v1/me')).status).toBe(200);
    const { secret } = (await (await act(admin, id, 'POST', '/console/v1/playground-key')).json()) as { secret: string };
    expect((await deletion(admin)).status).toBe(200);
    expect((await harness.get('/v1/models', secret)).status).toBe(401);
    expect((await membersOf(owner, id)).map(({ user_id }) => user_id)).not.toContain(admin.id);
  });

  it('drop the invitations of a member who may no longer invite', async () => {
    const owner = await newPerson();
    const id = await createOrganisation(owner);
    const admin = await join_(owner, id, 'admin');
    await invite(admin, id, 'backdoor@example.com', 'admin');
    await ofOrganisation(owner, id, 'PATCH', `/members/${admin.id}`, { role: 'developer' });
    const { data } = (await (await ofOrganisation(owner, id, 'GET', '/invitations')).json()) as { data: unknown[] };
    expect(data).toEqual([]);
  });

  it('drop the owner invitations of an owner who becomes an admin', async () => {
    const owner = await newPerson();
    const id = await createOrganisation(owner);
    const second = await join_(owner, id, 'owner');
    await invite(second, id, 'second-address@example.com', 'owner');
    await invite(second, id, 'colleague@example.com', 'developer');
    expect((await ofOrganisation(owner, id, 'PATCH', `/members/${second.id}`, { role: 'admin' })).status).toBe(200);
    const { data } = (await (await ofOrganisation(owner, id, 'GET', '/invitations')).json()) as { data: { email: string }[] };
    expect(data.map(({ email }) => email)).toEqual(['colleague@example.com']);
  });

  it('are closed to a suspended member, whose playground keys end', async () => {
    const owner = await newPerson();
    const id = await createOrganisation(owner);
    const developer = await join_(owner, id, 'developer');
    const { secret } = (await (await act(developer, id, 'POST', '/console/v1/playground-key')).json()) as { secret: string };
    const answer = await fetch(`${harness.url}/admin/v1/accounts/${developer.id}`, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${harness.adminKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ suspended: true }),
    });
    expect(answer.status).toBe(200);
    expect(await codeOf(await act(developer, id, 'GET', '/console/v1/keys'))).toBe('account_suspended');
    expect((await harness.get('/v1/models', secret)).status).toBe(401);
    expect((await act(owner, id, 'GET', '/console/v1/keys')).status).toBe(200);
  });

  it('end the playground keys of a member who becomes a viewer, and name the account in each response', async () => {
    const owner = await newPerson();
    const id = await createOrganisation(owner);
    const developer = await join_(owner, id, 'developer');
    const created = await act(developer, id, 'POST', '/console/v1/playground-key');
    expect(created.headers.get('x-account-id')).toBe(id);
    const { secret } = (await created.json()) as { secret: string };
    expect((await harness.get('/v1/models', secret)).status).toBe(200);
    expect((await ofOrganisation(owner, id, 'PATCH', `/members/${developer.id}`, { role: 'viewer' })).status).toBe(200);
    expect((await harness.get('/v1/models', secret)).status).toBe(401);
  });

  it('are bounded per person', async () => {
    const owner = await newPerson();
    const answers = await Promise.all(
      Array.from({ length: MAX_CREATED + 3 }, () => owner.browser.post('/console/v1/organisations', { name: 'Many' })),
    );
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(MAX_CREATED);
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(3);
    const [{ id = '' } = {}] = await Promise.all(
      answers.filter(({ status }) => status === 201).map(async (answer) => (await answer.json()) as { id?: string }),
    );
    expect((await ofOrganisation(owner, id, 'DELETE', '')).status).toBe(200);
    // Organisations deleted within a day of their creation still count toward the limit.
    expect((await owner.browser.post('/console/v1/organisations', { name: 'Again' })).status).toBe(409);
  });

  it('retain a bounded log', async () => {
    const owner = await newPerson();
    const organisationId = await createOrganisation(owner);
    const log = new OrganisationLog({ database: harness.app.database, now: () => now });
    await harness.app.database.transaction().execute(async (transaction) => {
      for (let index = 0; index < MAX_EVENTS + 5; index++) {
        await addEvent(transaction, { organisationId, actorId: owner.id, action: 'key.changed', subject: String(index) }, now + index);
      }
    });
    const events = await log.list(organisationId, 2 * MAX_EVENTS, null);
    expect(events).toHaveLength(MAX_EVENTS);
    expect(events[0]?.subject).toBe(String(MAX_EVENTS + 4));
  });

  it('permit each role the actions of the policy, on every route', async () => {
    const owner = await newPerson();
    const id = await createOrganisation(owner);
    const members = new Map<OrganisationRole, Person>([['owner', owner]]);
    for (const role of ORGANISATION_ROLES) if (role !== 'owner') members.set(role, await join_(owner, id, role));
    const stranger = await newPerson();
    // These routes come last, because they remove memberships that the other checks need.
    const isLast = (route: string): boolean => route.endsWith('/leave') || route === 'DELETE /console/v1/organisation';
    const routes = Object.keys(ACCESS_POLICIES).sort((a, b) => Number(isLast(a)) - Number(isLast(b)) || (a < b ? 1 : -1));
    for (const route of routes) {
      const policy = ACCESS_POLICIES[route];
      if (policy === undefined || policy.acts === 'person') continue;
      const [method = '', url = ''] = route.split(' ');
      const path = url.replaceAll(/:\w+|\*/g, 'nothing');
      expect([route, await codeOf(await act(stranger, id, method, path))]).toEqual([route, 'not_a_member']);
      if (policy.acts === 'organisation') {
        expect([route, await codeOf(await act(owner, owner.id, method, path))]).toEqual([route, 'invalid_request']);
      }
      for (const role of [...ORGANISATION_ROLES].reverse()) {
        const person = members.get(role);
        if (person === undefined) continue;
        const answer = await act(person, id, method, path);
        const isRefused = answer.status === 403;
        expect([route, role, isRefused]).toEqual([route, role, !hasPermission(role, policy.permission)]);
      }
    }
    expect((await act(owner, id, 'GET', '/console/v1/organisation')).status).toBe(403);
    expect(() => policyOf('GET', '/console/v1/unknown')).toThrow('ACCESS_POLICIES');
    expect(policyOf('HEAD', '/console/v1/me')).toEqual({ acts: 'person' });
  });

  it('end with their keys, and are shown to operators', async () => {
    const owner = await newPerson();
    const id = await createOrganisation(owner, 'Closing');
    const viewer = await join_(owner, id, 'viewer');
    const organisation = await bodyAs(ConsoleOrganisationSchema, await ofOrganisation(viewer, id, 'GET', ''));
    expect(organisation).toMatchObject({ name: 'Closing', member_count: 2, role: 'viewer' });
    expect((await ofOrganisation(owner, id, 'PATCH', '', { name: 'Renamed' })).status).toBe(200);
    const { secret } = (await (await act(owner, id, 'POST', '/console/v1/keys', { name: 'key' })).json()) as { secret: string };
    const asOperator = async (method: string, body?: unknown): Promise<Record<string, unknown>> => {
      const answer = await fetch(`${harness.url}/admin/v1/accounts/${id}`, {
        method,
        headers: { authorization: `Bearer ${harness.adminKey}`, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return (await answer.json()) as Record<string, unknown>;
    };
    expect(await asOperator('GET')).toMatchObject({
      name: 'Renamed',
      email: null,
      is_organisation: true,
      members: [
        { email: owner.email, role: 'owner' },
        { email: viewer.email, role: 'viewer' },
      ],
    });
    expect(await asOperator('PATCH', { is_admin: true })).toMatchObject({ error: { code: 'conflict' } });
    await asOperator('PATCH', { suspended: true });
    expect(await codeOf(await act(owner, id, 'GET', '/console/v1/balance'))).toBe('account_suspended');
    expect(await codeOf(await harness.get('/v1/models', secret))).toBe('account_suspended');
    await asOperator('PATCH', { suspended: false });
    expect(await codeOf(await ofOrganisation(viewer, id, 'DELETE', ''))).toBe('forbidden');
    expect((await ofOrganisation(owner, id, 'DELETE', '')).status).toBe(200);
    expect((await harness.get('/v1/models', secret)).status).toBe(401);
    expect(await codeOf(await act(viewer, id, 'GET', '/console/v1/balance'))).toBe('not_a_member');
    expect(await asOperator('GET')).toMatchObject({ is_organisation: true, deleted_at: expect.any(String), members: [] });
  });

  it('have the roles that the documentation says', () => {
    const page = readFileSync(join(import.meta.dirname, '../../../../../docs/organisations.md'), 'utf8');
    for (const permission of ROLE_PERMISSIONS.owner) {
      const cells = ORGANISATION_ROLES.map((role) => (hasPermission(role, permission) ? 'yes' : '–'));
      expect(page).toContain(`| \`${permission}\` | ${cells.join(' | ')} |`);
    }
  });
});

async function codeOf(answer: Response): Promise<unknown> {
  const { error } = (await answer.json()) as { error?: { code?: unknown } };
  return error?.code;
}
