import { randomUUID } from 'node:crypto';
import type { JobRow } from '../../src/database/tables/ledger.js';

/** Row of the table `jobs` for a settled job: 10 prompt and 20 completion tokens for 50 micro-USD. */
export function settledJob(row: Partial<JobRow> & Pick<JobRow, 'account_id' | 'reserved_at'>): JobRow {
  return {
    job_id: randomUUID(),
    api_key_id: 'key',
    model: 'a/model',
    endpoint: '/v1/chat/completions',
    state: 'settled',
    amount: 100,
    price_id: 'price',
    prompt_per_million: 1,
    cached_per_million: null,
    completion_per_million: 1,
    per_image: 0,
    max_prompt_tokens: 100,
    max_completion_tokens: 100,
    max_images: 0,
    holder: 'none',
    ended_at: row.reserved_at,
    provider_id: 'machine-1',
    earner: null,
    prompt_tokens: 10,
    completion_tokens: 20,
    hidden_tokens: 0,
    cached_tokens: 0,
    images: 0,
    cost: 50,
    earned: 45,
    fee: 5,
    ...row,
  };
}
