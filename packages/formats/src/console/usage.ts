/** Console API: the usage list of an account. */
import Type, { type Static } from 'typebox';
import { count, microUsd, page, time } from './schema-parts.js';

/** One settled job. It says nothing of what was asked or answered. */
export const ConsoleUsageEntrySchema = Type.Object({
  /** The job; `X-Inference-Job-ID` of its answer. */
  request_id: Type.String(),
  completed_at: time,
  model: Type.String(),
  endpoint: Type.String(),
  /** The key that asked. `name` is null when nothing is known of it any more. */
  key: Type.Object({ id: Type.String(), name: Type.Union([Type.String(), Type.Null()]) }),
  /** The machine that answered. */
  provider_id: Type.Union([Type.String(), Type.Null()]),
  prompt_tokens: count,
  completion_tokens: count,
  images: count,
  cost_micro_usd: microUsd,
});
export type ConsoleUsageEntry = Static<typeof ConsoleUsageEntrySchema>;

/** `GET /console/v1/usage?from=&to=&model=&key=`: days (UTC) as in `/usage/days`; `key` is the id of a key or `playground`. */
export const ConsoleUsagePageSchema = page(ConsoleUsageEntrySchema);
export type ConsoleUsagePage = Static<typeof ConsoleUsagePageSchema>;
