/**
 * `NetworkStatusService` computes the content of the status page, from component reports, model checks and incidents in the database,
 * and from the models served now.
 *
 * While the database does not answer, the last status is shown with all components down.
 */
import {
  COMPONENT_STATES,
  type ComponentState,
  type Incident,
  MAX_STATUS_DAYS,
  type NetworkStatus,
  STATUS_COMPONENTS,
  type StatusComponent,
  type StatusComponentId,
  type StatusModel,
} from '@inference/formats';
import {
  type ComponentAvailabilityRepository,
  type ComponentMinutes,
  minutesPerDay,
} from '../../database/component-availability-repository.js';
import type { IncidentRepository, Incident as StoredIncident } from '../../database/incident-repository.js';
import type { ModelAvailabilityRepository } from '../../database/model-availability-repository.js';
import { DAY_MS, MINUTE_MS } from '../../time-units.js';
import { incidentBody } from './incident-body.js';
import { type Cached, TimedCache } from './timed-cache.js';

export const STATUS_MAX_AGE_SECONDS = 30;
/** Component name in the database under which failed calls to the payment processor are recorded. */
export const PAYMENTS_FAILED = 'payments_failed';
/** Number of days after which a model that is no longer served disappears from the page. */
const LISTED_MODEL_DAYS = 7;
/** Bounds the rows that one computation reads. */
const MAX_MODELS = 500;
const MAX_PAST_INCIDENTS = 50;
/** Maximum incidents per read, in any state. */
const MAX_READ_INCIDENTS = 100;
/** A component has a partial outage after more minutes than this without reports. Coordinators report several times per minute. */
const MAX_SILENT_MINUTES = 3;
/** A component is no longer shown after more minutes than this without reports. */
const REMOVED_AFTER_SILENT_MINUTES = 7 * 1440;
/** How long payments are shown as degraded after a failed call to the payment processor. */
const DEGRADED_MINUTES = 5;

const COMPONENT_NAMES: Readonly<Record<StatusComponentId, string>> = { api: 'API', payments: 'Payments', console: 'Console' };
const STATE_OF_IMPACT: Readonly<Record<Incident['impact'], ComponentState>> = {
  none: 'operational',
  minor: 'degraded_performance',
  major: 'partial_outage',
  critical: 'major_outage',
};
/** Indicators of the overall status by severity. Their index equals the index in `COMPONENT_STATES`. */
const INDICATORS = ['none', 'minor', 'major', 'critical'] as const;
const DESCRIPTIONS: Readonly<Record<NetworkStatus['status']['indicator'], string>> = {
  none: 'All systems operational',
  minor: 'Degraded performance',
  major: 'Partial outage',
  critical: 'Major outage',
  maintenance: 'Maintenance in progress',
};

/** The cached status, with all models and days. {@link NetworkStatusService.read} selects from it. */
type StatusSnapshot = Omit<NetworkStatus, 'model_count'>;

export interface StatusSelection {
  /** Number of days of history, including today. */
  readonly days: number;
  readonly limit: number;
  /** Part of a model id, case-insensitive. Empty: all models. */
  readonly search: string;
}

interface NetworkStatusDeps {
  readonly components: Pick<ComponentAvailabilityRepository, 'read'>;
  readonly models: Pick<ModelAvailabilityRepository, 'recentModels' | 'read'>;
  readonly incidents: Pick<IncidentRepository, 'list'>;
  readonly readServed: () => Promise<ReadonlySet<string>>;
  readonly now: () => number;
  readonly onError: (error: unknown) => void;
}

export class NetworkStatusService {
  readonly #deps: NetworkStatusDeps;
  readonly #cache: TimedCache<StatusSnapshot>;
  #last: StatusSnapshot | null = null;

  constructor(deps: NetworkStatusDeps) {
    this.#deps = deps;
    this.#cache = new TimedCache({ maxAgeMs: STATUS_MAX_AGE_SECONDS * 1000, now: deps.now, make: (now) => this.#compute(now) });
  }

  async read({ days, limit, search }: StatusSelection): Promise<Cached<NetworkStatus>> {
    const { value, ageSeconds } = await this.#cache.get();
    const text = search.toLowerCase();
    const matching = text === '' ? value.models : value.models.filter(({ id }) => id.toLowerCase().includes(text));
    const oldest = Date.parse(value.updated_at) - days * DAY_MS;
    return {
      value: {
        ...value,
        components: value.components.map((component) => ({
          ...component,
          days: lastOf(component.days, days),
          down_minutes: lastOf(component.down_minutes, days),
        })),
        models: matching.slice(0, limit).map((model) => ({ ...model, days: lastOf(model.days, days) })),
        model_count: matching.length,
        past_incidents: value.past_incidents.filter(({ resolved_at, ends_at }) => Date.parse(resolved_at ?? ends_at ?? '') > oldest),
      },
      ageSeconds,
    };
  }

  /** Throws the database's error if there is no earlier status. */
  async #compute(now: number): Promise<StatusSnapshot> {
    try {
      this.#last = await this.#fromDatabase(now);
      return this.#last;
    } catch (error) {
      if (this.#last === null) throw error;
      this.#deps.onError(error);
      const components = this.#last.components.map((component) => ({ ...component, state: 'major_outage' as const }));
      return { ...this.#last, components, status: { indicator: 'critical', description: `${DESCRIPTIONS.critical}.` } };
    }
  }

  async #fromDatabase(now: number): Promise<StatusSnapshot> {
    const { components, models, incidents, readServed } = this.#deps;
    const names = await models.recentModels(now, { days: LISTED_MODEL_DAYS, limit: MAX_MODELS });
    const [minutes, uptimes, served, stored] = await Promise.all([
      components.read(),
      names.length === 0 ? new Map() : models.read(now, { days: MAX_STATUS_DAYS, models: names }),
      readServed(),
      incidents.list({ limit: MAX_READ_INCIDENTS, endedAfter: now - MAX_STATUS_DAYS * DAY_MS }),
    ]);
    const groups = groupIncidents(stored, now);
    const active = [...groups.open, ...groups.maintenance.filter(({ status }) => status === 'in_progress')];
    const componentBodies = STATUS_COMPONENTS.flatMap((id) => {
      const reported = minutes.get(id);
      if (reported === undefined || reported.lastMinute < Math.floor(now / MINUTE_MS) - REMOVED_AFTER_SILENT_MINUTES) return [];
      const failed = id === 'payments' ? minutes.get(PAYMENTS_FAILED) : undefined;
      const affecting = active.filter(({ components: affected }) => affected.includes(id));
      return [componentBody(id, { reported, failed, affecting, now })];
    });
    const modelBodies = names.map((id): StatusModel => {
      const uptime = uptimes.get(id);
      const affecting = active.filter(({ models: affected }) => affected.includes(id));
      return {
        id,
        state: stateOf(served.has(id) ? 'operational' : 'major_outage', affecting),
        uptime: uptime === undefined ? null : roundShare(uptime.share),
        days: (uptime?.days ?? []).map(({ share }: { readonly share: number | null }) => (share === null ? null : roundShare(share))),
      };
    });
    return {
      updated_at: new Date(now).toISOString(),
      status: overallStatus(componentBodies, modelBodies, active),
      components: componentBodies,
      models: modelBodies,
      open_incidents: groups.open,
      maintenance: groups.maintenance,
      past_incidents: groups.past.slice(0, MAX_PAST_INCIDENTS),
    };
  }
}

/** Groups for the status page. Incidents keep their order, and unfinished maintenance is sorted by its start. */
function groupIncidents(stored: readonly StoredIncident[], now: number): { open: Incident[]; maintenance: Incident[]; past: Incident[] } {
  const bodies = stored.map((incident) => incidentBody(incident, now));
  const hasEnded = ({ status }: Incident): boolean => status === 'resolved' || status === 'completed';
  return {
    open: bodies.filter((incident) => incident.kind === 'incident' && !hasEnded(incident)),
    maintenance: bodies
      .filter((incident) => incident.kind === 'maintenance' && !hasEnded(incident))
      .sort((a, b) => Date.parse(a.starts_at ?? '') - Date.parse(b.starts_at ?? '')),
    past: bodies.filter(hasEnded),
  };
}

interface ComponentFacts {
  /** Minutes in which a coordinator reported the component. */
  readonly reported: ComponentMinutes;
  /** Minutes in which a call to the payment processor failed. Undefined: none, or another component. */
  readonly failed: ComponentMinutes | undefined;
  /** Active incidents and maintenance that affect the component. */
  readonly affecting: readonly Incident[];
  readonly now: number;
}

function componentBody(id: StatusComponentId, { reported, failed, affecting, now }: ComponentFacts): StatusComponent {
  const minute = Math.floor(now / MINUTE_MS);
  const today = Math.floor(now / DAY_MS);
  const days = minutesPerDay(reported, now, MAX_STATUS_DAYS).map(({ observed, up }, index) => {
    const failures = failed?.byDay.get(today - (MAX_STATUS_DAYS - 1) + index) ?? 0;
    return { observed, up: Math.max(0, up - failures) };
  });
  const observed = days.reduce((sum, day) => sum + day.observed, 0);
  const up = days.reduce((sum, day) => sum + day.up, 0);
  const isSilent = reported.lastMinute < minute - MAX_SILENT_MINUTES;
  const hasFailed = failed !== undefined && failed.lastMinute >= minute - DEGRADED_MINUTES;
  return {
    id,
    name: COMPONENT_NAMES[id],
    state: stateOf(isSilent ? 'partial_outage' : hasFailed ? 'degraded_performance' : 'operational', affecting),
    uptime: observed === 0 ? null : roundShare(up / observed),
    days: days.map((day) => (day.observed === 0 ? null : roundShare(day.up / day.observed))),
    down_minutes: days.map((day) => (day.observed === 0 ? null : day.observed - day.up)),
  };
}

/**
 * State of a component or model: the worst of the measured state and the impacts of incidents.
 *
 * Maintenance hides a measured outage: the state is then `under_maintenance`, unless an incident with an impact is active too.
 */
function stateOf(measured: ComponentState, affecting: readonly Incident[]): ComponentState {
  const states = affecting.map(({ kind, impact }) => (kind === 'maintenance' ? 'under_maintenance' : STATE_OF_IMPACT[impact]));
  const severity = (state: ComponentState): number => (state === 'under_maintenance' ? 0 : COMPONENT_STATES.indexOf(state));
  const worst = [measured, ...states].reduce((worstYet, state) => (severity(state) > severity(worstYet) ? state : worstYet));
  return states.includes('under_maintenance') && states.every((state) => severity(state) === 0) ? 'under_maintenance' : worst;
}

function overallStatus(
  components: readonly StatusComponent[],
  models: readonly StatusModel[],
  active: readonly Incident[],
): NetworkStatus['status'] {
  const unavailable = models.filter(({ state }) => state === 'major_outage').length;
  const severities = [
    ...components.map(({ state }) => (state === 'under_maintenance' ? 0 : COMPONENT_STATES.indexOf(state))),
    ...active.filter(({ kind }) => kind === 'incident').map(({ impact }) => INDICATORS.indexOf(impact)),
    // If no model is available, every inference request fails.
    models.length > 0 && unavailable === models.length ? INDICATORS.indexOf('major') : 0,
  ];
  const worst = INDICATORS[Math.max(0, ...severities)] ?? 'critical';
  const indicator = worst === 'none' && active.some(({ kind }) => kind === 'maintenance') ? 'maintenance' : worst;
  const modelsText =
    unavailable === 0 ? '' : `, ${unavailable} of ${models.length} ${models.length === 1 ? 'model' : 'models'} unavailable`;
  return { indicator, description: `${DESCRIPTIONS[indicator]}${modelsText}.` };
}

/** Rounds an uptime down to four decimal places, so that only an uptime without failures becomes 1. */
function roundShare(share: number): number {
  return Math.floor(share * 10_000) / 10_000;
}

function lastOf<T>(list: readonly T[], count: number): T[] {
  return count === 0 ? [] : list.slice(-count);
}
