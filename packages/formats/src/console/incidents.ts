/**
 * Admin API schemas: how operators publish incidents and scheduled maintenance on the status page.
 *
 * An incident has a title and a list of updates: plain texts, each with the status from then on.
 */
import { NAME_PATTERN } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { INCIDENT_IMPACTS, INCIDENT_STATUSES, IncidentSchema, MAINTENANCE_STATUSES, STATUS_COMPONENTS } from '../public/network-status.js';
import { page, requestBody, timeOrNull } from './schema-parts.js';

/** Characters (code points). */
const MAX_TITLE_LENGTH = 120;
/** Characters (code points). */
const MAX_MESSAGE_LENGTH = 2000;
const MAX_MODELS = 20;

const title = Type.String({
  minLength: 1,
  maxLength: MAX_TITLE_LENGTH,
  // At least one character is not blank.
  pattern: `^(?=.*\\S)${NAME_PATTERN.slice(1)}`,
  description: `a text of 1 to ${MAX_TITLE_LENGTH} characters that is not blank, without line breaks or other control characters`,
});
const message = Type.String({
  minLength: 1,
  maxLength: MAX_MESSAGE_LENGTH,
  // Allows line breaks and tabs. XML and PostgreSQL reject other control characters; marks of text direction could disguise the text.
  pattern: '^(?=[\\s\\S]*\\S)(?:[\\t\\n\\r]|[^\\p{Cc}\\p{Cs}\\u202A-\\u202E\\u2066-\\u2069])*$',
  description: `a text of 1 to ${MAX_MESSAGE_LENGTH} characters that is not blank, without control characters other than line breaks and tabs`,
});
const impact = Type.Enum([...INCIDENT_IMPACTS], { description: `one of ${INCIDENT_IMPACTS.join(', ')}` });
const components = Type.Array(Type.Enum([...STATUS_COMPONENTS]), {
  maxItems: STATUS_COMPONENTS.length,
  uniqueItems: true,
  description: `an array of ${STATUS_COMPONENTS.join(', ')}, none twice`,
});
const models = Type.Array(Type.String({ minLength: 1, maxLength: 128, pattern: NAME_PATTERN }), {
  maxItems: MAX_MODELS,
  uniqueItems: true,
  description: `an array of up to ${MAX_MODELS} model ids, none twice`,
});
const statuses = [...INCIDENT_STATUSES, ...MAINTENANCE_STATUSES] as const;
const status = Type.Enum([...statuses], {
  description: `for an incident one of ${INCIDENT_STATUSES.join(', ')}, for maintenance one of ${MAINTENANCE_STATUSES.join(', ')}`,
});
const incidentFields = { title, impact, components, models };

/**
 * `POST /admin/v1/incidents`: creates an incident with its first update.
 *
 * With `starts_at` and `ends_at`, creates scheduled maintenance instead.
 */
export const AdminIncidentCreateSchema = requestBody({
  ...incidentFields,
  status,
  message,
  starts_at: Type.Optional(timeOrNull),
  ends_at: Type.Optional(timeOrNull),
});
export type AdminIncidentCreate = Static<typeof AdminIncidentCreateSchema>;

/** `PATCH /admin/v1/incidents/{id}`: replaces the given members; the updates stay. */
export const AdminIncidentChangeSchema = Type.Partial(
  requestBody({ ...incidentFields, starts_at: Type.Optional(timeOrNull), ends_at: Type.Optional(timeOrNull) }),
);
export type AdminIncidentChange = Static<typeof AdminIncidentChangeSchema>;

/** `POST /admin/v1/incidents/{id}/updates`: adds an update. */
export const AdminIncidentUpdateSchema = requestBody({ status, message });
export type AdminIncidentUpdate = Static<typeof AdminIncidentUpdateSchema>;

/** `PATCH /admin/v1/incidents/{id}/updates/{update_id}`: corrects the text of an update. */
export const AdminIncidentUpdateChangeSchema = requestBody({ message });
export type AdminIncidentUpdateChange = Static<typeof AdminIncidentUpdateChangeSchema>;

/** `GET /admin/v1/incidents`: newest first. */
export const AdminIncidentPageSchema = page(IncidentSchema);
export type AdminIncidentPage = Static<typeof AdminIncidentPageSchema>;
