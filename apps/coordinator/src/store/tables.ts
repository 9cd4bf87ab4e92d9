/**
 * The tables, as the queries see them. Times are integer milliseconds and flags are nullable times, so that the same
 * queries run on SQLite and on PostgreSQL. No table has a column for a prompt, an output or anything derived from one.
 */
import type { Kysely } from 'kysely';

export interface Tables {
  accounts: { id: string; name: string; created_at: number };
  api_keys: {
    id: string;
    account_id: string;
    kind: ApiKeyKind;
    /** Lowercase hexadecimal SHA-256 of the whole key. The key itself is never stored. */
    hash: string;
    /** First characters of the key, for people to recognise it by. */
    prefix: string;
    created_at: number;
    last_used_at: number | null;
    revoked_at: number | null;
  };
  receipts: {
    job_id: string;
    account_id: string;
    /** base64url of the signed payload: ids, digests, counts and times. */
    receipt: string;
    receipt_signature: string;
    response_signature: string;
    created_at: number;
  };
}

/** `api` keys use the inference endpoints, `admin` keys the operator's. Neither opens the other's. */
export type ApiKeyKind = 'api' | 'admin';

export type Database = Kysely<Tables>;
