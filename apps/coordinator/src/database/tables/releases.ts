/** Types of the tables of rollouts of agent versions. */
export interface ReleaseTables {
  /** One row per agent version. `findings`: JSON of the last check. `evidence_since`: offers before this time are not evaluated. */
  rollouts: {
    version: string;
    state: 'active' | 'paused' | 'halted' | 'complete';
    stage: number;
    started_at: number;
    stage_started_at: number;
    evidence_since: number;
    urgent_since: number | null;
    ended_at: number | null;
    reason: string | null;
    /** `coordinator`, `account:<id>` or `key:<id>`. */
    changed_by: string;
    findings: string | null;
    checked_at: number | null;
  };
  /**
   * Machines that were offered a version or run it (`updated`), and a sample of others for comparison (`control`).
   *
   * `since`: time of the offer or of the sampling. `models`: JSON list. Trust: 0 none, 1 self_signed, 2 hardware.
   */
  rollout_machines: {
    version: string;
    provider_id: string;
    part: 'updated' | 'control';
    chip_family: string;
    models: string;
    slots: number;
    since: number;
    seen_at: number;
    on_version_at: number | null;
    failed_at: number | null;
    blocked_at: number | null;
    restricted_at: number | null;
    trust_before: number | null;
    trust: number | null;
    attempts: number;
    failures: number;
    /** Model and decode rate (tokens per second) before the offer. `speed_ratio`: later rate divided by this one. */
    speed_model: string | null;
    speed_before: number | null;
    speed_ratio: number | null;
    /** Hash of version and owner's account. Machines without an account share one hash. Null: written by an earlier version. */
    owner: string | null;
    /** 1: the owner, not the rollout's stage or an operator, chose the version. */
    is_volunteer: number | null;
  };
  /** Capacity of the machines at each coordinator. `fleet`: JSON. */
  rollout_fleets: { coordinator: string; seen_at: number; fleet: string };
  /** The operators' rollout policy. One row. `policy`: JSON. */
  rollout_policies: { name: string; policy: string; changed_at: number; changed_by: string };
}
