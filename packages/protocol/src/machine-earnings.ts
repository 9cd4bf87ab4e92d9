/**
 * Response of `GET /v1/machine/earnings`, which the agent requests with its machine token.
 *
 * Amounts are in micro-USD.
 */
import Type, { type Static } from 'typebox';
import { ProviderIdSchema } from './ids.js';

const Count = Type.Integer({ minimum: 0 });
const Day = Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}$' });
const MicroUsd = Type.Integer();

/** Maximum days per response. */
export const MAX_EARNING_DAYS = 90;

export const MachineEarningsSchema = Type.Object({
  object: Type.Literal('machine.earnings'),
  provider_id: ProviderIdSchema,
  account_name: Type.String({ maxLength: 256 }),
  /** IANA time zone of the days, as the request asked. */
  time_zone: Type.String({ maxLength: 64 }),
  /** First and last day; the last is today. */
  from: Day,
  to: Day,
  /** One entry per day and model with jobs, oldest first. Only what this machine earned for this account. */
  data: Type.Array(
    Type.Object({
      day: Day,
      model: Type.String({ maxLength: 256 }),
      requests: Count,
      prompt_tokens: Count,
      completion_tokens: Count,
      images: Count,
      earned_micro_usd: MicroUsd,
    }),
    { maxItems: 100_000 },
  ),
  /** Totals over all machines of the account. */
  account: Type.Object({
    machines: Count,
    earned_total_micro_usd: MicroUsd,
    withdrawable_micro_usd: MicroUsd,
    /** Earnings that cannot be withdrawn yet. Absent, like `maturing`, if there are none. */
    pending_micro_usd: Type.Optional(MicroUsd),
    /** Times at which earnings become withdrawable (ISO 8601, UTC), earliest first. */
    maturing: Type.Optional(
      Type.Array(Type.Object({ at: Type.String({ maxLength: 32 }), amount_micro_usd: MicroUsd }), { maxItems: 1000 }),
    ),
  }),
  /** ISO 8601, UTC. */
  server_time: Type.String({ maxLength: 32 }),
});
export type MachineEarnings = Static<typeof MachineEarningsSchema>;
