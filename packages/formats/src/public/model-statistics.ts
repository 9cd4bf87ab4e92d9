/** Schema of measured performance and uptime of one model, as the public model list publishes them. */
import Type, { type Static } from 'typebox';

/** Performance figures cover the current time slice, and the complete slices of this many hours before. */
export const PERFORMANCE_HOURS = 24;
/** Days of uptime, including today. */
const AVAILABILITY_DAYS = 30;

const amount = Type.Number({ minimum: 0 });

const PercentilesSchema = Type.Object(
  { p5: amount, p50: amount, p95: amount, requests: Type.Integer({ minimum: 1, description: 'Measured requests.' }) },
  { description: 'Percentiles over requests, exact to 5 percent.' },
);
export type Percentiles = Static<typeof PercentilesSchema>;
const measured = (description: string) => Type.Union([PercentilesSchema, Type.Null()], { description });

const UptimeSchema = Type.Object({
  share: Type.Number({ minimum: 0, maximum: 1, description: 'Share of the checks at which a machine served the model.' }),
  checks: Type.Integer({ minimum: 1, description: 'Checks since `since`, one per minute while a coordinator runs.' }),
  since: Type.String({
    description: 'Day of the first check at which a machine served the model, ISO 8601, UTC; 30 days ago at the earliest.',
  }),
  days: Type.Array(Type.Object({ date: Type.String(), share: Type.Union([Type.Number({ minimum: 0, maximum: 1 }), Type.Null()]) }), {
    minItems: AVAILABILITY_DAYS,
    maxItems: AVAILABILITY_DAYS,
    description: 'UTC days, the oldest first. null: no check since the first one of the model.',
  }),
});
export type Uptime = Static<typeof UptimeSchema>;

export const ModelStatisticsSchema = Type.Object(
  {
    first_token_ms: measured('Time from the request to the first content of its stream. For text models.'),
    tokens_per_second: measured('Output tokens per second after the first content of a stream. For text models.'),
    duration_ms: measured('Time from the request to the complete response. For embedding and image models.'),
    uptime: Type.Union([UptimeSchema, Type.Null()], { description: 'null: not checked yet.' }),
  },
  {
    description: `Measured by this network with settled requests of at least the last ${PERFORMANCE_HOURS} hours, as far as its coordinators ran. null: not measured.`,
  },
);
export type ModelStatistics = Static<typeof ModelStatisticsSchema>;
