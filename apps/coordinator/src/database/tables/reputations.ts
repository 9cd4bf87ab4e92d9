/** What jobs of enclave keys came to lately. Keys of which nothing counts any more have no row. */

export interface ReputationTables {
  provider_reputations: {
    provider_id: string;
    /** Weight of the failures, and times in a row that another was quicker, as they were at `at`. */
    weight: number;
    late: number;
    at: number;
    /** `cooldown`, `quarantine`, or null: it is not held back. The other columns of the restraint are null with it. */
    restraint_kind: string | null;
    restraint_reason: string | null;
    restraint_detail: string | null;
    restraint_since: number | null;
    restraint_until: number | null;
    cooldowns: number;
    quarantines: number;
    cooldowns_at: number;
    quarantines_at: number;
    /** When it was written, in milliseconds since 1970. */
    written_at: number;
  };
}
