/** `/admin/v1/incidents`: operators publish, update and remove the incidents and scheduled maintenance of the public status page. */
import {
  type AdminIncidentChange,
  AdminIncidentChangeSchema,
  AdminIncidentCreateSchema,
  type AdminIncidentPage,
  AdminIncidentPageSchema,
  AdminIncidentUpdateChangeSchema,
  AdminIncidentUpdateSchema,
  apiError,
  INCIDENT_STATUSES,
  type Incident,
  IncidentSchema,
  MAINTENANCE_STATUSES,
  RequestError,
  readJsonBody,
  schemaCheck,
} from '@inference/formats';
import type { FastifyInstance, FastifyReply } from 'fastify';
import Type from 'typebox';
import {
  type IncidentFields,
  type IncidentRepository,
  MAX_OPEN_INCIDENTS,
  MAX_UPDATES_PER_INCIDENT,
  type Incident as StoredIncident,
} from '../../database/incident-repository.js';
import { incidentBody } from '../../telemetry/statistics/incident-body.js';
import { readPageQuery, toPage } from '../parameters/pagination.js';
import { parseTime } from '../parameters/times.js';
import { bytesOf } from '../plugins/request-bodies.js';
import { pathParams } from '../plugins/route-schemas.js';
import { sendError } from '../plugins/send-error.js';

const MAX_BODY_BYTES = 32_768;

const RemovedSchema = Type.Object({ id: Type.String(), removed: Type.Literal(true) });
const checkCreate = schemaCheck(AdminIncidentCreateSchema);
const checkChange = schemaCheck(AdminIncidentChangeSchema);
const checkUpdate = schemaCheck(AdminIncidentUpdateSchema);
const checkUpdateChange = schemaCheck(AdminIncidentUpdateChangeSchema);

interface IncidentRoutes {
  readonly incidents: IncidentRepository;
  readonly now: () => number;
}

interface ById {
  readonly Params: { readonly id: string };
}

export function addIncidents(server: FastifyInstance, routes: IncidentRoutes): void {
  addIncidentList(server, routes);
  addIncidentChanges(server, routes);
  addIncidentUpdates(server, routes);
}

function addIncidentList(server: FastifyInstance, { incidents, now }: IncidentRoutes): void {
  const schema = { response: { 200: AdminIncidentPageSchema } };
  server.get('/admin/v1/incidents', { onRequest: server.guards.admin, schema }, async (request): Promise<AdminIncidentPage> => {
    const { limit, after } = readPageQuery(request.query as Readonly<Record<string, string | undefined>>);
    const rows = await incidents.list({ limit: limit + 1, after });
    const time = now();
    return toPage(
      rows,
      limit,
      ({ createdAt, id }) => ({ at: createdAt, id }),
      (row) => incidentBody(row, time),
    );
  });
}

function addIncidentChanges(server: FastifyInstance, routes: IncidentRoutes): void {
  const { incidents } = routes;
  const options = { onRequest: server.guards.admin, bodyLimit: MAX_BODY_BYTES };
  const createSchema = { body: AdminIncidentCreateSchema, response: { 200: IncidentSchema } };
  server.post('/admin/v1/incidents', { ...options, schema: createSchema }, async (request, reply) => {
    const {
      status,
      message,
      title,
      impact,
      components,
      models,
      starts_at = null,
      ends_at = null,
    } = checkCreate(readJsonBody(bytesOf(request)));
    const kind = starts_at === null && ends_at === null ? 'incident' : 'maintenance';
    const fields = { title: title.trim(), impact, components, models, ...scheduleOf(kind, { starts_at, ends_at }) };
    checkStatus(kind, status);
    const id = await incidents.create({ kind, ...fields }, { status, message });
    if (id !== null) return incidentOr404(routes, reply, id);
    return sendConflict(reply, `At most ${MAX_OPEN_INCIDENTS} incidents can be open. Resolve one first.`);
  });
  const changeSchema = { params: pathParams('id'), body: AdminIncidentChangeSchema, response: { 200: IncidentSchema } };
  server.patch<ById>('/admin/v1/incidents/:id', { ...options, schema: changeSchema }, async (request, reply) => {
    const change = checkChange(readJsonBody(bytesOf(request)));
    const { id } = request.params;
    const incident = await incidents.find(id);
    if (incident === null) return sendUnknown(reply);
    await incidents.change(id, changedFields(incident, change));
    return incidentOr404(routes, reply, id);
  });
  const removeSchema = { params: pathParams('id'), response: { 200: RemovedSchema } };
  server.delete<ById>('/admin/v1/incidents/:id', { onRequest: server.guards.admin, schema: removeSchema }, async (request, reply) => {
    const { id } = request.params;
    return (await incidents.remove(id)) ? { id, removed: true } : sendUnknown(reply);
  });
}

function addIncidentUpdates(server: FastifyInstance, routes: IncidentRoutes): void {
  const { incidents } = routes;
  const options = { onRequest: server.guards.admin, bodyLimit: MAX_BODY_BYTES };
  const addSchema = { params: pathParams('id'), body: AdminIncidentUpdateSchema, response: { 200: IncidentSchema } };
  server.post<ById>('/admin/v1/incidents/:id/updates', { ...options, schema: addSchema }, async (request, reply) => {
    const update = checkUpdate(readJsonBody(bytesOf(request)));
    const { id } = request.params;
    const incident = await incidents.find(id);
    if (incident === null) return sendUnknown(reply);
    checkStatus(incident.kind, update.status);
    if ((await incidents.addUpdate(id, update)) !== 'too_many') return incidentOr404(routes, reply, id);
    return sendConflict(reply, `An incident has at most ${MAX_UPDATES_PER_INCIDENT} updates, of which the last one ends it.`);
  });
  const changeSchema = { params: pathParams('id', 'update_id'), body: AdminIncidentUpdateChangeSchema, response: { 200: IncidentSchema } };
  server.patch<{ Params: { id: string; update_id: string } }>(
    '/admin/v1/incidents/:id/updates/:update_id',
    { ...options, schema: changeSchema },
    async (request, reply) => {
      const { message } = checkUpdateChange(readJsonBody(bytesOf(request)));
      const { id, update_id } = request.params;
      return (await incidents.changeUpdate(id, update_id, message)) ? incidentOr404(routes, reply, id) : sendUnknown(reply);
    },
  );
}

async function incidentOr404({ incidents, now }: IncidentRoutes, reply: FastifyReply, id: string): Promise<Incident | FastifyReply> {
  const incident = await incidents.find(id);
  return incident === null ? sendUnknown(reply) : incidentBody(incident, now());
}

function sendConflict(reply: FastifyReply, message: string): FastifyReply {
  sendError(reply, apiError('conflict', { message }));
  return reply;
}

function sendUnknown(reply: FastifyReply): FastifyReply {
  sendError(reply, apiError('not_found', { message: 'There is no such incident or update.' }));
  return reply;
}

/** Scheduled times of maintenance (ISO 8601). Null for incidents. */
interface Schedule {
  readonly starts_at: string | null;
  readonly ends_at: string | null;
}

/** Parses scheduled times. Maintenance needs both, incidents have none. Throws RequestError. */
function scheduleOf(kind: StoredIncident['kind'], { starts_at, ends_at }: Schedule): Pick<IncidentFields, 'startsAt' | 'endsAt'> {
  const startsAt = parseTime('starts_at', starts_at ?? undefined) ?? null;
  const endsAt = parseTime('ends_at', ends_at ?? undefined) ?? null;
  if (kind === 'incident') {
    if (startsAt === null && endsAt === null) return { startsAt, endsAt };
    throw new RequestError('invalid_request', startsAt === null ? 'ends_at' : 'starts_at', 'Only maintenance has a scheduled time.');
  }
  if (startsAt === null) throw new RequestError('invalid_request', 'starts_at', 'starts_at is required with ends_at.');
  if (endsAt === null) throw new RequestError('invalid_request', 'ends_at', 'ends_at is required with starts_at.');
  if (endsAt <= startsAt) throw new RequestError('invalid_request', 'ends_at', 'ends_at must be after starts_at.');
  return { startsAt, endsAt };
}

/** All fields of an incident after a change. Members that are absent from the change keep their value. */
function changedFields(incident: StoredIncident, change: AdminIncidentChange): IncidentFields {
  const isoOrNull = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());
  const { title, impact, components, models, starts_at = isoOrNull(incident.startsAt), ends_at = isoOrNull(incident.endsAt) } = change;
  return {
    title: title?.trim() ?? incident.title,
    impact: impact ?? incident.impact,
    components: components ?? incident.components,
    models: models ?? incident.models,
    ...scheduleOf(incident.kind, { starts_at, ends_at }),
  };
}

/** Throws RequestError for a status that the kind does not have. */
function checkStatus(kind: StoredIncident['kind'], status: Incident['status']): void {
  const allowed: readonly string[] = kind === 'incident' ? INCIDENT_STATUSES : MAINTENANCE_STATUSES;
  if (allowed.includes(status)) return;
  const subject = kind === 'incident' ? 'an incident' : 'maintenance';
  throw new RequestError('invalid_request', 'status', `status of ${subject} must be one of ${allowed.join(', ')}.`);
}
