/** Types of tables for operators (quarantines, audit log, incidents, health), owners' names of machines, and state that coordinators share. */

export type IncidentKind = 'incident' | 'maintenance';
export type IncidentImpact = 'none' | 'minor' | 'major' | 'critical';
/** The first four are for incidents, the others for maintenance. */
export type IncidentStatus = 'investigating' | 'identified' | 'monitoring' | 'resolved' | 'scheduled' | 'in_progress' | 'completed';

export interface OperationTables {
  /** Name that an owner gave a provider. Valid while the provider is linked to the account. */
  machine_names: { provider_id: string; account_id: string; name: string };
  /** Last known state of linked providers. `facts`: JSON, see database/providers/last-seen-repository.ts. */
  machines_last_seen: { provider_id: string; seen_at: number; facts: string };
  /** Quarantined providers, which get no jobs. `held_by`: as `operator` in `operator_actions`. */
  provider_holds: { provider_id: string; reason: string; since: number; held_by: string };
  /** Audit log. A row is written before its action; later only the outcome (and the id of a created object) is set. */
  operator_actions: {
    id: string;
    at: number;
    /** `account:<id>` or `key:<id>`. */
    operator: string;
    /** Method and path of the admin API, or a command such as `admin create`. */
    action: string;
    /** Id of the object: an account, a provider, a withdrawal or a model. */
    subject: string | null;
    /** Request body as JSON. */
    details: string | null;
    /** `done`, an error code, or null if the outcome is unknown. */
    outcome: string | null;
  };
  /** `value`: 32 bytes in hexadecimal. */
  secrets: { name: string; value: string };
  /**
   * Number of sign-ins, e-mails or other limited actions in a time window. Also stores recently seen names, to recognise them.
   *
   * `name`: keyed hash, hexadecimal.
   */
  attempt_counts: { name: string; count: number; expires_at: number };
  /** Last time at which a coordinator ran periodic work (periodic-work.ts). */
  periodic_runs: { name: string; ran_at: number };
  /**
   * Number of periodic checks per UTC day (`checks`) at which a provider served the model. `missed`: checks of the day before the first of
   * them.
   *
   * The row with an empty model counts all checks. Stored for ninety days.
   */
  model_availability: { model: string; day: number; checks: number; missed: number };
  /** Minutes per component and UTC day with a coordinator's report. `minutes`: their number. First and last in minutes since 1970. */
  component_availability: { component: string; day: number; minutes: number; first_minute: number; last_minute: number };
  /** Incidents and maintenance, written by operators. `components`, `models`: JSON lists. `starts_at`, `ends_at`: of maintenance. */
  incidents: {
    id: string;
    kind: IncidentKind;
    title: string;
    impact: IncidentImpact;
    components: string;
    models: string;
    created_at: number;
    starts_at: number | null;
    ends_at: number | null;
    resolved_at: number | null;
    /** Last edit of the incident or of an update; null: none, or by an earlier version. */
    changed_at: number | null;
  };
  incident_updates: { id: string; incident_id: string; at: number; status: IncidentStatus; message: string };
  /** Health figures of one coordinator in the `slot_seconds` from `slot_at` on. `figures`: JSON, see telemetry/history. */
  health_history: { coordinator: string; slot_seconds: number; slot_at: number; figures: string };
  /** Handled webhook events. `digest`: hexadecimal SHA-256 of the body. */
  webhook_digests: { digest: string; expires_at: number };
  /** Nonces of accepted sealed requests. `digest`: hexadecimal SHA-256 of account and nonce. */
  sealed_nonces: { digest: string; expires_at: number; job_id: string | null };
  /** Published keysets of the end-to-end mode. `body`: JSON, as served. */
  e2e_keysets: { epoch: number; body: string; issued_at: number };
  /** Claimed content of a keyset epoch, before its entry in the transparency log. `body`: canonical JSON without the member `log`. */
  e2e_keyset_claims: { epoch: number; body: string; issued_at: number };
}
