/** Tables of names, quarantines, the operators' audit log, and shared secrets. */
export interface OperationTables {
  /** What an owner calls a machine; it counts while the machine is linked to that account. */
  machine_names: { provider_id: string; account_id: string; name: string };
  /** Of machines that are linked to an account. `facts`: JSON, see store/last-seen.ts. */
  machines_last_seen: { provider_id: string; seen_at: number; facts: string };
  /** Enclave keys that get no job until an operator says otherwise. `held_by` as in `operator_actions`. */
  provider_holds: { provider_id: string; reason: string; since: number; held_by: string };
  /** Append-only, but for the outcome: a row is there before anything is done. */
  operator_actions: {
    id: string;
    at: number;
    /** `account:<id>` or `key:<id>`. */
    operator: string;
    /** Method and address of the admin API. */
    action: string;
    /** The id in the address: an account, a provider, a withdrawal, a model. */
    subject: string | null;
    /** What was sent, as JSON. */
    details: string | null;
    /** `done`, the code of the error, or null: it is not known how it ended. */
    outcome: string | null;
  };
  /** `value`: 32 bytes in hexadecimal. */
  secrets: { name: string; value: string };
}
