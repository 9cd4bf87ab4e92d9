/** Incidents and maintenance: operators write them, everyone reads them as JSON and as an Atom feed. */
import { AdminIncidentPageSchema, type Incident, type NetworkStatus, STATUS_SCHEMAS } from '@inference/formats';
import { Compile } from 'typebox/compile';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { ComponentAvailabilityRepository } from '../../../src/database/component-availability-repository.js';
import { describeDatabases, startHarnessOn } from '../../support/databases.js';
import { errorOf, type Harness, MODEL, NO_RATE_LIMITS } from '../../support/harness.js';

const MINUTE_MS = 60_000;
const DAY_MS = 1440 * MINUTE_MS;
const BASE = Date.parse('2026-06-15T12:00:00Z');
const INCIDENT = {
  title: 'Slow <answers> & "errors"',
  impact: 'major',
  components: ['api'],
  models: [MODEL],
  status: 'investigating',
  message: 'We see <b>errors</b>.\nMore soon.',
};

describeDatabases('incidents', (fresh) => {
  let harness: Harness;
  let time = BASE;

  beforeAll(async () => {
    harness = await startHarnessOn(fresh, { now: () => time, config: { rateLimits: NO_RATE_LIMITS } });
  });
  afterAll(() => harness.close());
  beforeEach(async () => {
    for (const { id } of (await list()).data) expect((await send('DELETE', `/${id}`)).status).toBe(200);
    // Lets the cached status expire.
    time += MINUTE_MS;
  });

  const send = (method: string, path: string, body?: object) =>
    fetch(`${harness.url}/admin/v1/incidents${path}`, {
      method,
      headers: { authorization: `Bearer ${harness.adminKey}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const create = async (body: object): Promise<Incident> => {
    const response = await send('POST', '', body);
    expect([response.status, response.status === 200 ? '' : await response.clone().text()]).toEqual([200, '']);
    return (await response.json()) as Incident;
  };
  const list = async () => {
    const body: unknown = await (await send('GET', '')).json();
    expect([...Compile(AdminIncidentPageSchema).Errors(body)]).toEqual([]);
    return body as { data: Incident[] };
  };
  const status = async (query = ''): Promise<NetworkStatus> => {
    // Lets the cached status expire. A coordinator reports its components several times per minute, so the new minute needs a report.
    time += MINUTE_MS;
    await new ComponentAvailabilityRepository(harness.app.database).report(['api', 'payments', 'console'], time);
    const response = await harness.get(`/v1/network/status${query}`, null);
    expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([200, '*']);
    expect(response.headers.get('cache-control')).toBe('public, max-age=30');
    const body: unknown = await response.json();
    expect([...Compile(STATUS_SCHEMAS.NetworkStatus).Errors(body)]).toEqual([]);
    return body as NetworkStatus;
  };

  it('appear with their updates, change the state of affected components, and move to the past', async () => {
    expect((await status()).status).toMatchObject({ indicator: 'none' });
    const { id, updates } = await create(INCIDENT);
    const open = await status();
    expect(open.status).toMatchObject({ indicator: 'major', description: expect.stringContaining('Partial outage') });
    expect(open.components.map(({ id, state }) => [id, state])).toEqual([
      ['api', 'partial_outage'],
      ['payments', 'operational'],
      ['console', 'operational'],
    ]);
    expect(open.open_incidents).toMatchObject([
      { id, kind: 'incident', status: 'investigating', updates: [{ message: INCIDENT.message }] },
    ]);

    expect((await send('PATCH', `/${id}`, { title: 'Slow answers', impact: 'minor' })).status).toBe(200);
    expect((await send('PATCH', `/${id}/updates/${updates[0]?.id}`, { message: 'We see errors.' })).status).toBe(200);
    expect((await status()).components[0]?.state).toBe('degraded_performance');

    const resolved = await send('POST', `/${id}/updates`, { status: 'resolved', message: 'It works again.' });
    expect(await resolved.json()).toMatchObject({ status: 'resolved', title: 'Slow answers', resolved_at: new Date(time).toISOString() });
    const after = await status();
    expect(after.open_incidents).toEqual([]);
    expect(after.past_incidents).toMatchObject([{ id, updates: [{ status: 'resolved' }, { message: 'We see errors.' }] }]);
    expect((await status('?days=0')).past_incidents).toEqual([]);

    const reopened = await send('POST', `/${id}/updates`, { status: 'monitoring', message: 'It is back.' });
    expect(await reopened.json()).toMatchObject({ status: 'monitoring', resolved_at: null });
  });

  it('are maintenance with a scheduled time, whose state follows it', async () => {
    const at = (minutes: number) => new Date(time + minutes * MINUTE_MS).toISOString();
    const { id } = await create({
      ...INCIDENT,
      status: 'scheduled',
      components: ['console'],
      models: [],
      starts_at: at(60),
      ends_at: at(120),
    });
    expect((await status()).maintenance).toMatchObject([{ id, status: 'scheduled' }]);
    time += 60 * MINUTE_MS;
    const during = await status();
    expect([during.maintenance[0]?.status, during.components[2]?.state]).toEqual(['in_progress', 'under_maintenance']);
    time += 60 * MINUTE_MS;
    expect((await status()).past_incidents).toMatchObject([{ id, status: 'completed' }]);
  });

  it('are refused with the name of the field, and recorded for operators', async () => {
    const refused = async (body: object): Promise<unknown> => (await errorOf(await send('POST', '', { ...INCIDENT, ...body }))).param;
    expect(await refused({ title: 'two\nlines' })).toBe('title');
    expect(await refused({ title: ' ' })).toBe('title');
    expect(await refused({ message: ' \n ' })).toBe('message');
    expect(await refused({ message: 'a\u0000b' })).toBe('message');
    expect(await refused({ message: 'x'.repeat(2001) })).toBe('message');
    expect(await refused({ impact: 'huge' })).toBe('impact');
    expect(await refused({ components: ['api', 'api'] })).toBe('components');
    expect(await refused({ models: Array.from({ length: 21 }, (_, index) => `m${index}`) })).toBe('models');
    expect(await refused({ status: 'completed' })).toBe('status');
    expect(await refused({ starts_at: '2026-07-01T00:00:00Z', status: 'scheduled' })).toBe('ends_at');
    expect(await refused({ starts_at: '2026-07-01T00:00:00Z', ends_at: '2026-06-01T00:00:00Z', status: 'scheduled' })).toBe('ends_at');
    expect((await send('PATCH', '/unknown', { title: 'x' })).status).toBe(404);
    expect((await harness.post('/admin/v1/incidents', INCIDENT)).status).toBe(403);
    time += 1;
    const { id } = await create(INCIDENT);
    time += 1;
    await send('DELETE', `/${id}`);
    const { data } = (await (await harness.get('/admin/v1/actions?limit=1', harness.adminKey)).json()) as { data: object[] };
    expect(data).toMatchObject([{ action: 'DELETE /admin/v1/incidents/:id', subject: id, outcome: 'done' }]);
  });

  it('are bounded in number, and an incident can always be resolved', async () => {
    const { id } = await create(INCIDENT);
    const statuses: number[] = [];
    for (let count = 0; count < 49; count++) {
      time += 1;
      statuses.push((await send('POST', `/${id}/updates`, { status: 'monitoring', message: `Update ${count}.` })).status);
    }
    expect([...new Set(statuses.slice(0, 48)), statuses[48]]).toEqual([200, 409]);
    expect((await send('POST', `/${id}/updates`, { status: 'resolved', message: 'Done.' })).status).toBe(200);
    for (let count = 0; count < 20; count++) await create(INCIDENT);
    expect((await send('POST', '', INCIDENT)).status).toBe(409);
  });

  it('are an Atom feed with escaped texts', async () => {
    const { id } = await create(INCIDENT);
    time += MINUTE_MS;
    const response = await harness.get('/status.atom', null);
    expect(response.headers.get('content-type')).toBe('application/atom+xml; charset=utf-8');
    const text = await response.text();
    expect(text).toContain(`<id>urn:uuid:${id}</id>`);
    expect(text).toContain('<title type="text">Investigating: Slow &lt;answers&gt; &amp; &quot;errors&quot;</title>');
    // The text is escaped for HTML; that HTML is then escaped for XML.
    expect(text).toContain('We see &amp;lt;b&amp;gt;errors&amp;lt;/b&amp;gt;.&lt;br&gt;More soon.');
    expect(text).toContain(`<link rel="self" type="application/atom+xml" href="${harness.url}/status.atom"/>`);
  });

  it('are updated in the feed by the schedule of maintenance and by edits, and never in the future', async () => {
    const iso = (ms: number): string => new Date(ms).toISOString();
    const feed = async (): Promise<{ feed: string; title: string; updated: string; published: string }> => {
      // Past the cache.
      time += MINUTE_MS;
      const text = await (await harness.get('/status.atom', null)).text();
      const all = (name: string): string[] => [...text.matchAll(new RegExp(`<${name}[^>]*>([^<]*)<`, 'g'))].map(([, value = '']) => value);
      const [feed = '', updated = ''] = all('updated');
      const [, title = ''] = all('title');
      const [published = ''] = all('published');
      return { feed, title, published, updated };
    };
    const createdAt = time;
    const [startsAt, endsAt] = [createdAt + 60 * MINUTE_MS, createdAt + 120 * MINUTE_MS];
    const maintenance = { ...INCIDENT, title: 'New discs', status: 'scheduled', starts_at: iso(startsAt), ends_at: iso(endsAt) };
    const { id, updates } = await create(maintenance);
    const seen = { published: iso(createdAt) };
    expect(await feed()).toEqual({ ...seen, title: 'Scheduled: New discs', feed: iso(createdAt), updated: iso(createdAt) });
    const editedAt = time;
    await send('PATCH', `/${id}`, { ends_at: iso(endsAt + MINUTE_MS) });
    expect(await feed()).toEqual({ ...seen, title: 'Scheduled: New discs', feed: iso(editedAt), updated: iso(editedAt) });
    const wordsAt = time;
    await send('PATCH', `/${id}/updates/${updates[0]?.id}`, { message: 'Other words.' });
    expect((await feed()).updated).toBe(iso(wordsAt));
    time = startsAt;
    expect(await feed()).toEqual({ ...seen, title: 'In progress: New discs', feed: iso(startsAt), updated: iso(startsAt) });
    time = endsAt + MINUTE_MS;
    expect(await feed()).toEqual({
      ...seen,
      title: 'Completed: New discs',
      feed: iso(endsAt + MINUTE_MS),
      updated: iso(endsAt + MINUTE_MS),
    });
    await send('DELETE', `/${id}`);

    // Called off before its start, whose time then changes nothing.
    const calledOff = { starts_at: iso(time + 60 * MINUTE_MS), ends_at: iso(time + 120 * MINUTE_MS) };
    const other = await create({ ...maintenance, ...calledOff });
    time += MINUTE_MS;
    const offAt = time;
    await send('POST', `/${other.id}/updates`, { status: 'completed', message: 'Called off.' });
    time += 180 * MINUTE_MS;
    expect(await feed()).toMatchObject({ title: 'Completed: New discs', updated: iso(offAt) });
  });

  it('show models with search, limit and days', async () => {
    await harness.app.database
      .insertInto('model_availability')
      .values([
        { model: '', day: Math.floor(time / DAY_MS), checks: 4, missed: 0 },
        { model: 'Alpha/one', day: Math.floor(time / DAY_MS), checks: 3, missed: 0 },
        { model: 'beta', day: Math.floor(time / DAY_MS), checks: 2, missed: 2 },
      ])
      .execute();
    const all = await status();
    expect(all.status.description).toBe('Partial outage, 2 of 2 models unavailable.');
    expect(all.models.map(({ id, state, uptime, days }) => [id, state, uptime, days.length, days.at(-1)])).toEqual([
      ['Alpha/one', 'major_outage', 0.75, 90, 0.75],
      ['beta', 'major_outage', 1, 90, 1],
    ]);
    expect(await status('?search=alpha&days=3')).toMatchObject({ model_count: 1, models: [{ id: 'Alpha/one', days: [null, null, 0.75] }] });
    expect(await status('?limit=0')).toMatchObject({ model_count: 2, models: [] });
    const bad = await harness.get('/v1/network/status?days=91', null);
    expect([bad.status, (await errorOf(bad)).param]).toEqual([400, 'days']);
  });

  it('leave the last status as an outage while the database does not answer', async () => {
    await status();
    await harness.app.database.schema.alterTable('incidents').renameTo('incidents_away').execute();
    try {
      const broken = await status();
      expect(broken.status).toEqual({ indicator: 'critical', description: 'Major outage.' });
      expect(broken.components[0]?.state).toBe('major_outage');
    } finally {
      await harness.app.database.schema.alterTable('incidents_away').renameTo('incidents').execute();
    }
    expect((await status()).components[0]?.state).toBe('operational');
  });
});
