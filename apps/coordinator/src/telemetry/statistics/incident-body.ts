/** `incidentBody` converts a stored incident to the form of the status page and the API. */
import { type Incident, STATUS_COMPONENTS } from '@inference/formats';
import type { Incident as StoredIncident } from '../../database/incident-repository.js';

export function incidentBody(incident: StoredIncident, now: number): Incident {
  const { id, kind, title, impact, models, createdAt, startsAt, endsAt, resolvedAt, updates } = incident;
  const status = statusOf(incident, now);
  const endedAt = resolvedAt ?? (status === 'completed' ? endsAt : null);
  return {
    id,
    kind,
    title,
    impact,
    status,
    components: STATUS_COMPONENTS.filter((component) => incident.components.includes(component)),
    models: [...models],
    created_at: iso(createdAt),
    starts_at: startsAt === null ? null : iso(startsAt),
    ends_at: endsAt === null ? null : iso(endsAt),
    resolved_at: endedAt === null ? null : iso(endedAt),
    updated_at: iso(updatedAt(incident, endedAt, now)),
    updates: updates.map((update) => ({ id: update.id, status: update.status, message: update.message, created_at: iso(update.at) })),
  };
}

/** Status of the newest update. Maintenance also starts and ends at its scheduled times. */
function statusOf({ kind, startsAt, endsAt, resolvedAt, updates }: StoredIncident, now: number): Incident['status'] {
  if (kind === 'incident') return updates[0]?.status ?? 'investigating';
  if (resolvedAt !== null || (endsAt !== null && now >= endsAt)) return 'completed';
  if (updates[0]?.status === 'in_progress' || (startsAt !== null && now >= startsAt)) return 'in_progress';
  return 'scheduled';
}

/** Time of the last visible change, never in the future. The scheduled start counts as a change unless the maintenance ended earlier. */
function updatedAt({ createdAt, changedAt, startsAt, updates }: StoredIncident, endedAt: number | null, now: number): number {
  const startedAt = startsAt !== null && startsAt <= (endedAt ?? now) ? startsAt : null;
  return Math.min(now, Math.max(createdAt, updates[0]?.at ?? 0, changedAt ?? 0, startedAt ?? 0, endedAt ?? 0));
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
