/** Schemas of the public network status: components, models, incidents and maintenance. Coordinator, OpenAPI and console use them. */
import Type, { type Static } from 'typebox';

export const STATUS_COMPONENTS = ['api', 'payments', 'console'] as const;
export type StatusComponentId = (typeof STATUS_COMPONENTS)[number];
/** Ordered from best to worst, except the last. */
export const COMPONENT_STATES = ['operational', 'degraded_performance', 'partial_outage', 'major_outage', 'under_maintenance'] as const;
export type ComponentState = (typeof COMPONENT_STATES)[number];
export const INCIDENT_IMPACTS = ['none', 'minor', 'major', 'critical'] as const;
export const INCIDENT_STATUSES = ['investigating', 'identified', 'monitoring', 'resolved'] as const;
export const MAINTENANCE_STATUSES = ['scheduled', 'in_progress', 'completed'] as const;

export const MAX_STATUS_DAYS = 90;
export const MAX_STATUS_MODELS = 100;
const MAX_SEARCH_LENGTH = 128;

/** Each description completes the error message "<name> must be ...". */
export const NetworkStatusQuerySchema = Type.Object({
  days: Type.Integer({
    minimum: 0,
    maximum: MAX_STATUS_DAYS,
    default: MAX_STATUS_DAYS,
    description: `a whole number from 0 to ${MAX_STATUS_DAYS}`,
  }),
  limit: Type.Integer({
    minimum: 0,
    maximum: MAX_STATUS_MODELS,
    default: MAX_STATUS_MODELS,
    description: `a whole number from 0 to ${MAX_STATUS_MODELS}`,
  }),
  search: Type.String({ maxLength: MAX_SEARCH_LENGTH, default: '', description: `a text of at most ${MAX_SEARCH_LENGTH} characters` }),
});

const time = (description: string) => Type.String({ description: `${description}, ISO 8601, UTC.` });
const timeOrNull = (description: string) => Type.Union([Type.String(), Type.Null()], { description: `${description}, ISO 8601, UTC.` });
const share = Type.Number({ minimum: 0, maximum: 1 });
const shareOrNull = (description: string) => Type.Union([share, Type.Null()], { description });
const count = Type.Integer({ minimum: 0 });

export const IncidentUpdateSchema = Type.Object({
  id: Type.String(),
  status: Type.Enum([...INCIDENT_STATUSES, ...MAINTENANCE_STATUSES]),
  message: Type.String({ description: 'Plain text.' }),
  created_at: time('Time of the update'),
});
export type IncidentUpdate = Static<typeof IncidentUpdateSchema>;

export const IncidentSchema = Type.Object({
  id: Type.String(),
  kind: Type.Enum(['incident', 'maintenance']),
  title: Type.String(),
  impact: Type.Enum([...INCIDENT_IMPACTS]),
  status: Type.Enum([...INCIDENT_STATUSES, ...MAINTENANCE_STATUSES], {
    description: 'Status of the newest update. Maintenance also starts and ends at its scheduled times.',
  }),
  components: Type.Array(Type.Enum([...STATUS_COMPONENTS]), { description: 'Affected components.' }),
  models: Type.Array(Type.String(), { description: 'Affected models.' }),
  created_at: time('Time of creation'),
  starts_at: timeOrNull('Scheduled start of maintenance; null for incidents'),
  ends_at: timeOrNull('Scheduled end of maintenance; null for incidents'),
  resolved_at: timeOrNull('Time of the end; null while open'),
  updated_at: time('Time of the last change, also by an edit or by the schedule'),
  updates: Type.Array(IncidentUpdateSchema, { description: 'The newest first.' }),
});
export type Incident = Static<typeof IncidentSchema>;

const state = Type.Enum([...COMPONENT_STATES], { description: 'State now.' });
const uptime = shareOrNull(`Share of the last ${MAX_STATUS_DAYS} UTC days since the first record; null: no records.`);
const dayShares = Type.Array(Type.Union([share, Type.Null()]), {
  maxItems: MAX_STATUS_DAYS,
  description: 'Share per UTC day, the oldest first, today last. null: no records.',
});

const StatusComponent = Type.Object({
  id: Type.Enum([...STATUS_COMPONENTS]),
  name: Type.String(),
  state,
  uptime,
  days: dayShares,
  down_minutes: Type.Array(Type.Union([count, Type.Null()]), {
    maxItems: MAX_STATUS_DAYS,
    description: 'Minutes per UTC day in which the component was down, in the order of `days`.',
  }),
});
export type StatusComponent = Static<typeof StatusComponent>;

const StatusModel = Type.Object({ id: Type.String(), state, uptime, days: dayShares });
export type StatusModel = Static<typeof StatusModel>;

const NetworkStatus = Type.Object({
  updated_at: time('When this was computed'),
  status: Type.Object({
    indicator: Type.Enum(['none', 'minor', 'major', 'critical', 'maintenance'], {
      description: 'The worst among states of components and impacts of open incidents.',
    }),
    description: Type.String({ description: '`indicator` as one sentence.' }),
  }),
  components: Type.Array(StatusComponent),
  models: Type.Array(StatusModel, {
    maxItems: MAX_STATUS_MODELS,
    description: 'Models served in the last 7 days whose id contains `search`, at most `limit`.',
  }),
  model_count: Type.Integer({ minimum: 0, description: 'Matching models, also those beyond `limit`.' }),
  open_incidents: Type.Array(IncidentSchema, { description: 'The newest first.' }),
  maintenance: Type.Array(IncidentSchema, { description: 'Maintenance that is scheduled or in progress, the next first.' }),
  past_incidents: Type.Array(IncidentSchema, { description: 'Ended in the last `days` days, the newest first, at most 50.' }),
});
export type NetworkStatus = Static<typeof NetworkStatus>;

export const STATUS_SCHEMAS = { NetworkStatus };
