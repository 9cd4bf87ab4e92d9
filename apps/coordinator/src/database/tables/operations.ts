/** Tables of provider names, quarantines, the operators' audit log, shared secrets, shared counters, availability, incidents, health history and published keysets. */
export type IncidentKind = 'incident' | 'maintenance';
export type IncidentImpact = 'none' | 'minor' | 'major' | 'critical';
/** The first four of incidents, the others of maintenance. */
export type IncidentStatus = 'investigating' | 'identified' | 'monitoring' | 'resolved' | 'scheduled' | 'in_progress' | 'completed';

export interface OperationTables {
  /** Name of a provider, given by its owner; valid while the provider is linked to the account. */
  machine_names: { provider_id: string; account_id: string; name: string };
  /** Last known state of linked providers. `facts`: JSON, see database/providers/last-seen-repository.ts. */
  machines_last_seen: { provider_id: string; seen_at: number; facts: string };
  /** Quarantined enclave keys, which get no jobs. `held_by`: in the form of `operator` in `operator_actions`. */
  provider_holds: { provider_id: string; reason: string; since: number; held_by: string };
  /** Append-only except for the outcome: a row is written before its action. */
  operator_actions: {
    id: string;
    at: number;
    /** `account:<id>` or `key:<id>`. */
    operator: string;
    /** Method and address of the admin API. */
    action: string;
    /** The id in the address: an account, a provider, a withdrawal, a model. */
    subject: string | null;
    /** Request body as JSON. */
    details: string | null;
    /** `done`, an error code, or null if the outcome is unknown. */
    outcome: string | null;
  };
  /** `value`: 32 bytes in hexadecimal. */
  secrets: { name: string; value: string };
  /** Guesses and mails in a window, or a recent success. `name`: keyed hash, hexadecimal. */
  attempt_counts: { name: string; count: number; expires_at: number };
  /** Last time that any coordinator did periodic work of the network. */
  periodic_runs: { name: string; ran_at: number };
  /**
   * Checks per UTC day at which a provider served the model. `missed`: checks of the day before the model's first check.
   *
   * The empty model counts all checks. Retained for ninety days.
   */
  model_availability: { model: string; day: number; checks: number; missed: number };
  /** Per component and UTC day, the minutes since 1970 in which a coordinator reported: their number, the first and the last. */
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
  /** Figures of one coordinator during a slot of `slot_seconds` from `slot_at` on. `figures`: JSON, see telemetry/history. */
  health_history: { coordinator: string; slot_seconds: number; slot_at: number; figures: string };
  /** Handled webhook events. `digest`: hexadecimal SHA-256 of the body. */
  webhook_digests: { digest: string; expires_at: number };
  /** Nonces of accepted sealed requests. `digest`: hexadecimal SHA-256 of account and nonce. */
  sealed_nonces: { digest: string; expires_at: number; job_id: string | null };
  /** Published keysets of the end-to-end mode. `body`: JSON, as served. */
  e2e_keysets: { epoch: number; body: string; issued_at: number };
  /** Content of each epoch, stored before the log entry. `body`: canonical JSON of the keyset without `log`. */
  e2e_keyset_claims: { epoch: number; body: string; issued_at: number };
}
