/**
 * What a coordinator answers to a machine that asks what it has earned (`GET /v1/machine/earnings`, with its machine token): per day
 * of the owner's time zone and per model, and what the account may withdraw. Amounts are whole micro-USD.
 */
import Type, { type Static } from 'typebox';
import { ProviderIdSchema } from './ids.js';

const Count = Type.Integer({ minimum: 0 });
const Day = Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}$' });
const MicroUsd = Type.Integer();

/** Most days that are told at once. */
export const MAX_EARNING_DAYS = 90;

export const MachineEarningsSchema = Type.Object({
  object: Type.Literal('machine.earnings'),
  provider_id: ProviderIdSchema,
  /** As the account calls itself. */
  account_name: Type.String({ maxLength: 256 }),
  /** IANA name of the zone whose days these are. */
  time_zone: Type.String({ maxLength: 64 }),
  /** First and last day; the last is today. */
  from: Day,
  to: Day,
  /** Days and models with jobs, the oldest day first. Only what this machine earned for this account. */
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
  /** Of the account, with all of its machines. */
  account: Type.Object({
    machines: Count,
    earned_total_micro_usd: MicroUsd,
    withdrawable_micro_usd: MicroUsd,
    /** Earnings that cannot be withdrawn yet. Left out, as `maturing` is, where there are none. */
    pending_micro_usd: Type.Optional(MicroUsd),
    /** When they can be (ISO 8601, UTC), the earliest first. */
    maturing: Type.Optional(
      Type.Array(Type.Object({ at: Type.String({ maxLength: 32 }), amount_micro_usd: MicroUsd }), { maxItems: 1000 }),
    ),
  }),
  /** ISO 8601, UTC. */
  server_time: Type.String({ maxLength: 32 }),
});
export type MachineEarnings = Static<typeof MachineEarningsSchema>;
