/**
 * Admin API schemas: providers, health, prices, catalogue, audit log.
 *
 * `hold` and `held` mean quarantine by an operator for providers, and reservation for money and request bytes. A provider that is
 * restricted because of failed jobs is `restrained`; one without restriction is `well`.
 */
import { ProviderStatusSchema, RESTRICTION_STATES, TrustPartSchema } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { ConsoleLastSeenSchema } from './machine-view.js';
import { count, nullable, page, requestBody, time } from './schema-parts.js';

const milliseconds = Type.Integer({ minimum: 0, description: 'milliseconds since 1970' });

export const AdminHoldSchema = Type.Object({
  reason: Type.String(),
  since: time,
  /** Operator who set the quarantine: `account:<id>` or `key:<id>`. */
  by: Type.String(),
});
export type AdminHold = Static<typeof AdminHoldSchema>;

const Reputation = Type.Object({
  state: Type.Enum(['well', ...RESTRICTION_STATES]),
  reason: nullable(Type.String()),
  detail: nullable(Type.String()),
  since: nullable(milliseconds),
  until: nullable(milliseconds),
  recent_failures: count,
});

const AdminProviderSchema = Type.Object({
  provider_id: Type.String(),
  session_id: Type.String(),
  status: Type.String(),
  reason: nullable(Type.String()),
  trust_level: nullable(Type.String()),
  /** The single checks on which the trust level is based. */
  trust_parts: Type.Array(
    Type.Object({
      name: Type.String(),
      state: TrustPartSchema.properties.state,
      reason: nullable(Type.String()),
      detail: nullable(Type.String()),
    }),
  ),
  /** Whether the provider passed the newest challenge that is no longer open. */
  attested: Type.Boolean(),
  simulated: Type.Boolean(),
  serial_number: Type.String(),
  agent: Type.Object({ name: Type.String(), version: Type.String() }),
  models: Type.Array(Type.String()),
  refused_models: Type.Array(Type.Object({ id: Type.String(), reason: Type.String() })),
  /** Why the provider can take no job at this moment, such as `away` or `no_free_slot`; null if it can. */
  gate: nullable(Type.String()),
  hold: nullable(AdminHoldSchema),
  /** Number of jobs that the scheduler assigned to the provider since it connected. */
  placements: count,
  share_of_placements: Type.Number(),
  speeds: Type.Array(Type.Object({ model: Type.String(), prefill_tps: Type.Number(), decode_tps: Type.Number(), measured_jobs: count })),
  answer_lengths: Type.Array(
    Type.Object({
      model: Type.String(),
      answers: count,
      /** Mean per answer of tokens without visible text, such as think segments. */
      hidden_tokens: Type.Number(),
      /** Mean per answer. */
      completion_tokens: Type.Number(),
      /** Median over the machines with this model; null with too few machines. */
      median_hidden_tokens: nullable(Type.Number()),
      /** Median over the machines with this model; null with too few machines. */
      median_completion_tokens: nullable(Type.Number()),
      /** The mean that is far above its median; null: none. */
      outlier: nullable(Type.Enum(['hidden_tokens', 'completion_tokens'])),
    }),
  ),
  host: Type.Object({ thermal: Type.String(), memory_pressure: Type.String(), power: Type.String() }),
  slots: count,
  /** Jobs in progress, as the coordinator counts them. */
  running_jobs: count,
  /** Jobs in progress, as the machine reports them. */
  reported_jobs: count,
  decode_tps: nullable(Type.Number()),
  reputation: Reputation,
  requests_served: count,
  tokens_generated: count,
  key_expires_at: nullable(milliseconds),
  registered_at: milliseconds,
  last_heard_at: milliseconds,
  counters: Type.Object({
    unknown_messages: count,
    stray_messages: count,
    missed_challenges: count,
    /** Answers to challenges after their time. */
    late_answers: count,
  }),
});
export type AdminProvider = Static<typeof AdminProviderSchema>;

/** `GET /admin/v1/providers`. `providers` are connected; `restrained` and `held` also list disconnected ones. */
export const AdminProviderListSchema = Type.Object({
  providers: Type.Array(AdminProviderSchema),
  restrained: Type.Array(Type.Interface([Reputation], { provider_id: Type.String() })),
  held: Type.Array(Type.Interface([AdminHoldSchema], { provider_id: Type.String() })),
  connections: count,
  waiting_requests: count,
});
export type AdminProviderList = Static<typeof AdminProviderListSchema>;

/**
 * `GET /admin/v1/providers/{id}`: all that is known about one provider.
 *
 * 404 if the provider is neither connected, linked, quarantined, restricted nor seen recently.
 */
export const AdminProviderViewSchema = Type.Object({
  provider_id: Type.String(),
  owner: nullable(Type.Object({ account_id: Type.String(), email: nullable(Type.String()) })),
  provider: nullable(AdminProviderSchema),
  /** The machine's own status (`GET /v1/providers/me`); null while disconnected. */
  status: nullable(ProviderStatusSchema),
  last_seen: nullable(ConsoleLastSeenSchema),
  hold: nullable(AdminHoldSchema),
  reputation: Reputation,
});
export type AdminProviderView = Static<typeof AdminProviderViewSchema>;

/** `POST /admin/v1/providers/{id}/quarantine`. */
export const QuarantineSchema = requestBody({
  reason: Type.String({
    pattern: '^\\S(?:.{0,298}\\S)?$',
    description: 'a reason of 1 to 300 characters on one line, which the owner of the machine reads',
  }),
});
export type Quarantine = Static<typeof QuarantineSchema>;

/** Entry of the audit log, `GET /admin/v1/actions`. */
const AdminActionSchema = Type.Object({
  id: Type.String(),
  at: time,
  /** `account:<id>` or `key:<id>`. */
  operator: Type.String(),
  /** Name of the account or key; null after deletion. */
  operator_name: nullable(Type.String()),
  /** HTTP method and path of the admin API. */
  action: Type.String(),
  subject: nullable(Type.String()),
  /** Request parameters. */
  details: Type.Unknown(),
  /** `done`, an error code, or null: outcome unknown. */
  outcome: nullable(Type.String()),
});
export type AdminAction = Static<typeof AdminActionSchema>;
export const AdminActionPageSchema = page(AdminActionSchema);
export type AdminActionPage = Static<typeof AdminActionPageSchema>;

const Counted = Type.Array(Type.Object({ code: Type.String(), count }));

const queueCounts = Type.Object({
  running_jobs: count,
  waiting_requests: count,
  /** Image requests that wait for a provider. */
  waiting_for_images: count,
  held_request_bytes: count,
  /** Limit of `held_request_bytes`. */
  most_held_request_bytes: count,
});
const fleetCounts = Type.Object({
  connections: count,
  providers: count,
  routable: count,
  held: count,
  restrained: count,
  slots: count,
  used_slots: count,
  models: count,
});

/** `GET /admin/v1/health`: state of the responding coordinator; `queues`, `fleet` and `recent` describe the whole network. */
export const AdminHealthSchema = Type.Object({
  ready: Type.Boolean(),
  /** Reason why the coordinator is not ready; null if ready. */
  reason: nullable(Type.String()),
  version: Type.String(),
  node_version: Type.String(),
  started_at: time,
  server_time: time,
  memory_bytes: count,
  database: Type.Object({
    kind: Type.Enum(['sqlite', 'postgres']),
    state: Type.Enum(['ok', 'unreachable', 'migrations_missing', 'too_new']),
    /** Response time of the database, in milliseconds. */
    answer_ms: count,
  }),
  queues: queueCounts,
  fleet: fleetCounts,
  /** Null if the database is not usable or the ledger could not be read. */
  ledger: nullable(
    Type.Object({
      checked_at: time,
      owed_micro_usd: Type.Integer(),
      held_micro_usd: Type.Integer(),
      fees_micro_usd: Type.Integer(),
      requested_withdrawals_micro_usd: Type.Integer(),
      accounts: count,
      running_holds: count,
      /** One sentence per problem; empty if healthy. */
      problems: Type.Array(Type.String()),
    }),
  ),
  recent: Type.Object({
    minutes: count,
    /** Outcomes of jobs: `delivered`, `client_gone`, `refused` (a provider refused a sealed request), or the code of the error. */
    jobs: Counted,
    /** `attempt_failed:<reason>`, `provider_ended:<code>`, `provider_quarantined`, `ledger_failed:<step>`. */
    problems: Counted,
  }),
  /** Coordinators that answered, starting with the responding coordinator. Absent outside a cluster. */
  coordinators: Type.Optional(
    Type.Array(
      Type.Object({
        id: Type.String(),
        version: Type.String(),
        started_at: time,
        server_time: time,
        draining: Type.Boolean(),
        memory_bytes: count,
        queues: queueCounts,
        fleet: fleetCounts,
      }),
    ),
  ),
});
export type AdminHealth = Static<typeof AdminHealthSchema>;

const Percentiles = nullable(Type.Object({ p50: Type.Number({ minimum: 0 }), p95: Type.Number({ minimum: 0 }) }));
/** Average over the interval, summed over coordinators. */
const average = Type.Number({ minimum: 0 });

const HealthPoint = Type.Object({
  /** Start of the interval. */
  at: time,
  /** Number of coordinators that reported for this interval. If 0, counts are 0, and nullable members null. */
  coordinators: count,
  requests: Type.Object({
    delivered: count,
    /** The client disconnected. */
    cancelled: count,
    /** Refused by a provider, or with an error status below 500. */
    refused: count,
    /** Failed with an error status of 500 or above. */
    failed: count,
  }),
  /** Failed requests by error code, most frequent first. */
  failures: Counted,
  /** Duration of requests, in milliseconds. */
  latency_ms: Percentiles,
  /** Time to the first content of streams, in milliseconds. */
  first_token_ms: Percentiles,
  /** Waiting requests. `max`: sum of the maxima of all coordinators. */
  queue: Type.Object({ average, max: count }),
  running_jobs: average,
  providers: Type.Array(Type.Object({ trust_level: Type.String(), average })),
  routable: average,
  slots: average,
  used_slots: average,
  /** Maximum event loop delay at any coordinator. */
  event_loop_lag_ms: count,
  /** Latest ledger check in the interval; null: none. */
  ledger: nullable(
    Type.Object({
      owed_micro_usd: Type.Integer(),
      reserved_micro_usd: Type.Integer(),
      fees_micro_usd: Type.Integer(),
      requested_withdrawals_micro_usd: Type.Integer(),
      problems: count,
    }),
  ),
});

export const HEALTH_RANGES = ['1h', '24h', '7d'] as const;
export const HEALTH_RESOLUTIONS = ['1m', '10m', '1h'] as const;

/** `GET /admin/v1/health/history`: metrics of all coordinators over time, oldest first. Excludes the current interval. */
export const AdminHealthHistorySchema = Type.Object({
  range: Type.Enum([...HEALTH_RANGES]),
  resolution: Type.Enum([...HEALTH_RESOLUTIONS]),
  data: Type.Array(HealthPoint),
});
export type AdminHealthHistory = Static<typeof AdminHealthHistorySchema>;
export type AdminHealthPoint = AdminHealthHistory['data'][number];

const rates = { prompt_per_million: count, cached_per_million: count, completion_per_million: count, per_image: count };
const price = { id: Type.String(), model: Type.String(), ...rates, valid_from: time };

/** Entry of `GET /admin/v1/prices`, and response of `PUT /admin/v1/prices/{model}`. */
export const AdminPriceSchema = Type.Object(price);
export type AdminPrice = Static<typeof AdminPriceSchema>;
export const AdminPriceListSchema = Type.Object({
  object: Type.Literal('list'),
  currency: Type.Literal('micro_usd'),
  data: Type.Array(AdminPriceSchema),
});
export type AdminPriceList = Static<typeof AdminPriceListSchema>;
export const AdminPriceHistorySchema = Type.Object({
  model: Type.String(),
  current: Type.Object(rates),
  history: Type.Array(AdminPriceSchema),
});
export type AdminPriceHistory = Static<typeof AdminPriceHistorySchema>;

/** Entry of `GET /admin/v1/catalogue`; also the response of `PUT /admin/v1/catalogue/{model}`. */
export const AdminCatalogueEntrySchema = Type.Object({
  id: Type.String(),
  display_name: Type.String(),
  quantization: Type.String(),
  model_type: Type.Enum(['text', 'embedding', 'image']),
  min_memory_bytes: nullable(count),
  file_sha256: Type.Array(Type.String()),
  prices: Type.Object(rates),
  updated_at: time,
});
export type AdminCatalogueEntry = Static<typeof AdminCatalogueEntrySchema>;
export const AdminCatalogueSchema = Type.Object({
  object: Type.Literal('list'),
  /** Whether models outside this list are rejected. */
  exclusive: Type.Boolean(),
  currency: Type.Literal('micro_usd'),
  data: Type.Array(AdminCatalogueEntrySchema),
});
export type AdminCatalogue = Static<typeof AdminCatalogueSchema>;
