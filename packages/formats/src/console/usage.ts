/** Console API: the usage list of an account. */
import Type, { type Static } from 'typebox';
import { count, microUsd, page, time } from './schema-parts.js';

/** A settled job, without any content. */
const ConsoleUsageEntrySchema = Type.Object({
  /** Job id; `X-Inference-Job-ID` of the response. */
  request_id: Type.String(),
  completed_at: time,
  model: Type.String(),
  endpoint: Type.String(),
  /** API key of the request. `name` is null when unknown. */
  key: Type.Object({ id: Type.String(), name: Type.Union([Type.String(), Type.Null()]) }),
  /** Provider of the response. */
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
