/** Console API schemas: completed and failed requests of an account, and usage by day and by hour. */
import Type, { type Static } from 'typebox';
import { count, day, microUsd, nullable, page, time } from './schema-parts.js';

/** API key of a request. `name` is null if the key is unknown. */
const key = Type.Object({ id: Type.String(), name: nullable(Type.String()) });

const completed = {
  /** Job id, the response's `X-Inference-Job-ID`. */
  request_id: Type.String(),
  completed_at: time,
  model: Type.String(),
  endpoint: Type.String(),
  key,
  /** Provider that answered. */
  provider_id: nullable(Type.String()),
  prompt_tokens: count,
  completion_tokens: count,
  images: count,
  cost_micro_usd: microUsd,
  /** Time from reservation to settlement. */
  latency_ms: count,
};

/** A settled job. Contains no prompt and no output. */
const ConsoleUsageEntrySchema = Type.Object(completed);
export type ConsoleUsageEntry = Static<typeof ConsoleUsageEntrySchema>;

/**
 * `GET /console/v1/usage?from=&to=&model=&key=&sort=&order=`. `from` and `to` are days (UTC). `key` is the id of a key, or
 * `playground`.
 */
export const ConsoleUsagePageSchema = page(ConsoleUsageEntrySchema);
export type ConsoleUsagePage = Static<typeof ConsoleUsagePageSchema>;

export const USAGE_SORTS = ['time', 'model', 'tokens', 'cost', 'latency'] as const;
export type UsageSort = (typeof USAGE_SORTS)[number];
export const SORT_ORDERS = ['desc', 'asc'] as const;
export type SortOrder = (typeof SORT_ORDERS)[number];

const failed = {
  request_id: Type.String(),
  failed_at: time,
  /** Null if the requested model does not exist in the network. */
  model: nullable(Type.String()),
  endpoint: Type.String(),
  key,
  /** Provider of the last attempt; null: no attempt was made. */
  provider_id: nullable(Type.String()),
  end_to_end: Type.Boolean(),
  latency_ms: count,
  /** `code` and `status` as in OpenAI's format. `message` is the code's general text, not the one that the client got. */
  error: Type.Object({ code: Type.String(), status: Type.Integer(), message: Type.String() }),
};

/** A request that failed and was not charged. */
const ConsoleFailedRequestSchema = Type.Object(failed);
export type ConsoleFailedRequest = Static<typeof ConsoleFailedRequestSchema>;

/** `GET /console/v1/usage/failed`, with the same filters as `/usage`. */
export const ConsoleFailedRequestPageSchema = page(ConsoleFailedRequestSchema);

/** `GET /console/v1/usage/requests/{request_id}`. The receipt of a completed request is at `/v1/receipts/{request_id}`. */
export const ConsoleRequestSchema = Type.Union([
  Type.Object({
    state: Type.Literal('completed'),
    ...completed,
    /** Included in `prompt_tokens`. */
    cached_tokens: count,
    /** Included in `completion_tokens`. */
    hidden_tokens: count,
  }),
  Type.Object({ state: Type.Literal('failed'), ...failed }),
]);
export type ConsoleRequest = Static<typeof ConsoleRequestSchema>;

/** Sums over the requests of one model. */
const modelUsage = {
  model: Type.String(),
  requests: count,
  prompt_tokens: count,
  completion_tokens: count,
  images: count,
  cost_micro_usd: microUsd,
};

/** `GET /console/v1/usage/days`: one row per day (UTC) and model, oldest first. */
export const ConsoleUsageDaysSchema = Type.Object({ from: day, to: day, data: Type.Array(Type.Object({ day, ...modelUsage })) });
export type ConsoleUsageDays = Static<typeof ConsoleUsageDaysSchema>;

/** `GET /console/v1/usage/hours`: one row per hour (UTC) and model, oldest first. `hour`: start of the hour. */
export const ConsoleUsageHoursSchema = Type.Object({ data: Type.Array(Type.Object({ hour: time, ...modelUsage })) });
export type ConsoleUsageHours = Static<typeof ConsoleUsageHoursSchema>;
