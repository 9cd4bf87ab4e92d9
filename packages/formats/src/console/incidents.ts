/** Admin API schemas: incidents and maintenance on the status page. All texts are plain text. */
import { NAME_PATTERN } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { INCIDENT_IMPACTS, INCIDENT_STATUSES, IncidentSchema, MAINTENANCE_STATUSES, STATUS_COMPONENTS } from '../public/network-status.js';
import { page, requestBody, timeOrNull } from './schema-parts.js';

export const MAX_INCIDENT_TITLE = 120;
export const MAX_INCIDENT_MESSAGE = 2000;
export const MAX_INCIDENT_MODELS = 20;

const title = Type.String({
  minLength: 1,
  maxLength: MAX_INCIDENT_TITLE,
  pattern: `^(?=.*\\S)${NAME_PATTERN.slice(1)}`,
  description: `a text of 1 to ${MAX_INCIDENT_TITLE} characters, without line breaks or other control characters`,
});
const message = Type.String({
  minLength: 1,
  maxLength: MAX_INCIDENT_MESSAGE,
  // Line breaks and tabs are allowed. XML and PostgreSQL reject other control characters.
  pattern: '^(?=[\\s\\S]*\\S)(?:[\\t\\n\\r]|[^\\p{Cc}\\p{Cs}\\u202A-\\u202E\\u2066-\\u2069])*$',
  description: `a text of 1 to ${MAX_INCIDENT_MESSAGE} characters, without control characters other than line breaks and tabs`,
});
const impact = Type.Enum([...INCIDENT_IMPACTS], { description: `one of ${INCIDENT_IMPACTS.join(', ')}` });
const components = Type.Array(Type.Enum([...STATUS_COMPONENTS]), {
  maxItems: STATUS_COMPONENTS.length,
  uniqueItems: true,
  description: `an array of ${STATUS_COMPONENTS.join(', ')}, none twice`,
});
const models = Type.Array(Type.String({ minLength: 1, maxLength: 128, pattern: NAME_PATTERN }), {
  maxItems: MAX_INCIDENT_MODELS,
  uniqueItems: true,
  description: `an array of up to ${MAX_INCIDENT_MODELS} model ids, none twice`,
});
const statuses = [...INCIDENT_STATUSES, ...MAINTENANCE_STATUSES] as const;
const status = Type.Enum([...statuses], {
  description: `one of ${INCIDENT_STATUSES.join(', ')}, or for maintenance one of ${MAINTENANCE_STATUSES.join(', ')}`,
});
const subject = { title, impact, components, models };

/** `POST /admin/v1/incidents`. With `starts_at` and `ends_at`: scheduled maintenance. */
export const AdminIncidentCreateSchema = requestBody({
  ...subject,
  status,
  message,
  starts_at: Type.Optional(timeOrNull),
  ends_at: Type.Optional(timeOrNull),
});
export type AdminIncidentCreate = Static<typeof AdminIncidentCreateSchema>;

/** `PATCH /admin/v1/incidents/{id}`: replaces the members that are present. */
export const AdminIncidentChangeSchema = Type.Partial(
  requestBody({ ...subject, starts_at: Type.Optional(timeOrNull), ends_at: Type.Optional(timeOrNull) }),
);
export type AdminIncidentChange = Static<typeof AdminIncidentChangeSchema>;

/** `POST /admin/v1/incidents/{id}/updates`. */
export const AdminIncidentUpdateSchema = requestBody({ status, message });
export type AdminIncidentUpdate = Static<typeof AdminIncidentUpdateSchema>;

/** `PATCH /admin/v1/incidents/{id}/updates/{update_id}`. */
export const AdminIncidentUpdateChangeSchema = requestBody({ message });
export type AdminIncidentUpdateChange = Static<typeof AdminIncidentUpdateChangeSchema>;

/** `GET /admin/v1/incidents`: newest first. */
export const AdminIncidentPageSchema = page(IncidentSchema);
export type AdminIncidentPage = Static<typeof AdminIncidentPageSchema>;
