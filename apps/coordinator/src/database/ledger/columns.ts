/** Columns that ledger steps read and write, named one by one: a column of a newer program must not come into the way of this one. */

import type { JobRow } from '../tables/ledger.js';
import type { Tables } from '../tables.js';
import { ACTIVITY } from './activity.js';

export const JOB_COLUMNS = [
  'job_id',
  'account_id',
  'api_key_id',
  'model',
  'endpoint',
  'state',
  'amount',
  'price_id',
  'prompt_per_million',
  'completion_per_million',
  'per_image',
  'max_prompt_tokens',
  'max_completion_tokens',
  'max_images',
  'holder',
  'reserved_at',
  'ended_at',
  'provider_id',
  'earner',
  'prompt_tokens',
  'completion_tokens',
  'hidden_tokens',
  'cached_tokens',
  'images',
  'cost',
  'earned',
  'fee',
] as const satisfies readonly (keyof JobRow)[];

export const WITHDRAWAL_COLUMNS = [
  'id',
  'account_id',
  'amount',
  'state',
  'requested_at',
  'ended_at',
] as const satisfies readonly (keyof Tables['withdrawals'])[];

export const NETWORK_COLUMNS = ['hour', 'active_accounts', ...ACTIVITY] as const satisfies readonly (keyof Tables['network_totals'])[];
