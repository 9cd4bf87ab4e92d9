/**
 * Response of `GET /v1/providers/me`: a provider's own status, for its owner.
 *
 * Newer coordinators may add codes. The response reveals nothing about other providers or about single requests.
 */
import Type, { type Static } from 'typebox';
import { ProviderIdSchema } from './ids.js';
import { AVAILABILITY_STATES } from './wire/availability.js';
import { HardwareSchema, ModelOfferSchema } from './wire/model-offer.js';
import { RESTRICTION_STATES, TrustPartSchema } from './wire/trust-message.js';

const Code = Type.String({ pattern: '^[a-z0-9_]{1,64}$' });
const Sentence = Type.String({ maxLength: 512 });
const Time = Type.String({ maxLength: 32, description: 'ISO 8601, UTC.' });
const Count = Type.Integer({ minimum: 0 });
const Milliseconds = Type.Integer({ minimum: 0 });
const Rate = Type.Number({ minimum: 0 });
const Share = Type.Number({ minimum: 0, maximum: 1 });
const MicroUsd = Type.Integer();
const Model = ModelOfferSchema.properties.id;
const nullable = <Schema extends Parameters<typeof Type.Union>[0][number]>(schema: Schema) => Type.Union([schema, Type.Null()]);

const ModelStatusSchema = Type.Object({
  id: Model,
  state: Type.Enum(['ready', 'loading', 'on_demand'], { description: 'Whether the model is in memory, as the provider reports.' }),
  routable: Type.Boolean({ description: 'Whether the provider can get a request for the model now.' }),
  gate: nullable(Code),
  prefill_tps: Rate,
  decode_tps: Rate,
  measured_jobs: Type.Integer({
    minimum: 0,
    description: 'Number of answers in which the rates were measured. 0: the rates are estimated from the hardware.',
  }),
  placements: Type.Integer({ minimum: 0, description: 'Requests for the model that were placed on this provider in this session.' }),
  share: nullable(Share),
  demand: Type.Object({ requests_last_5_minutes: Count, waiting_requests: Count, expected_wait_ms: nullable(Milliseconds) }),
});

const PlacementDecisionSchema = Type.Object({
  model: Model,
  outcome: Type.Enum(['chosen', 'not_chosen', 'gate', 'not_eligible']),
  reason: Code,
  text: Sentence,
  slower_by_ms: Type.Optional(
    Type.Integer({
      minimum: 0,
      description: 'With reason `slower`: additional time compared with the best provider, for the newest decision.',
    }),
  ),
  challenge_age_ms: Type.Optional(
    Type.Integer({ minimum: 0, description: 'With reason `untrusted`: age of the newest answered challenge.' }),
  ),
  held_off_ms: Type.Optional(Type.Integer({ minimum: 0, description: 'With reason `held_off`: remaining time of the pause.' })),
  count: Type.Integer({ minimum: 1, description: 'Number of consecutive decisions of this kind.' }),
  first_at: Time,
  last_at: Time,
});
export type PlacementDecision = Static<typeof PlacementDecisionSchema>;

const NextStepSchema = Type.Object({ code: Code, text: Sentence, model: Type.Optional(Model) });
export type NextStep = Static<typeof NextStepSchema>;

export const ProviderStatusSchema = Type.Object({
  object: Type.Literal('provider.status'),
  provider_id: ProviderIdSchema,
  serial_number: Type.String({ maxLength: 64 }),
  chip_name: Type.String({ maxLength: 256 }),
  agent: Type.Object({ name: Type.String({ maxLength: 64 }), version: Type.String({ maxLength: 64 }) }),
  connected_at: Time,
  server_time: Time,
  status: Code,
  status_remedy: nullable(Sentence),
  gate: nullable(Code),
  availability: Type.Optional(
    Type.Object(
      { state: Type.Enum([...AVAILABILITY_STATES]), reason: nullable(Code), text: nullable(Sentence), until: nullable(Time) },
      { description: 'Whether the provider accepts requests, as it reports. If not: the reason, and the expected end.' },
    ),
  ),
  hardware: Type.Optional(
    Type.Object(
      {
        ...HardwareSchema.properties,
        adjusted: Type.Array(Code, { maxItems: 16, description: 'Reported members that the network does not accept.' }),
      },
      { description: 'Hardware that the provider reports, as far as the network accepts the report.' },
    ),
  ),
  trust_level: Type.Enum(['none', 'self_signed', 'hardware']),
  simulated: Type.Optional(Type.Boolean({ description: 'Simulated enclave: no trust level says anything about hardware.' })),
  trust_parts: Type.Array(TrustPartSchema, { maxItems: 32 }),
  slots: Count,
  running_jobs: Count,
  host: Type.Object({ thermal: Code, memory_pressure: Code, power: Code }),
  measured: Type.Optional(
    Type.Object(
      { prefill_tps: nullable(Rate), decode_tps: nullable(Rate) },
      { description: 'Newest rates of one stream in tokens per second, measured by the machine itself.' },
    ),
  ),
  models: Type.Array(ModelStatusSchema, { maxItems: 64 }),
  placements: Type.Integer({ minimum: 0, description: 'Requests that were placed on this provider in this session.' }),
  share: nullable(Share),
  decisions: Type.Array(PlacementDecisionSchema, {
    maxItems: 64,
    description:
      'Newest first: all decisions that chose this provider, and a sample of the others, as recorded at the time. All other members describe the current state.',
  }),
  reputation: Type.Object({
    state: Type.Enum(['well', ...RESTRICTION_STATES]),
    /** A restriction reason (`RESTRICTION_REASONS`); null while `state` is `well`. */
    reason: nullable(Code),
    since: nullable(Time),
    /** Time after which a single probe job decides about the state. */
    until: nullable(Time),
    /** Failures that still lower the provider's placement. */
    recent_failures: Count,
    held_off_until: nullable(Time),
    /** Consecutive refusals because all slots are in use. Each extends the backoff; an answered job resets the count. */
    refused_in_a_row: Type.Optional(Count),
  }),
  earnings: nullable(
    Type.Object({
      of: Type.Enum(['machine', 'account'], {
        description:
          '`machine`: earnings of this machine, which is linked to no account. `account`: earnings of all machines of the account.',
      }),
      today_micro_usd: MicroUsd,
      total_micro_usd: MicroUsd,
    }),
  ),
  next_steps: Type.Array(NextStepSchema, { maxItems: 32, description: 'What the owner can do, most effective first.' }),
});
export type ProviderStatusAnswer = Static<typeof ProviderStatusSchema>;
