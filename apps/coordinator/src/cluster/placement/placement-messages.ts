/**
 * Messages of a placement at another coordinator, with their schemas and parsers.
 *
 * The asking coordinator serves the client. The owning coordinator holds the provider's connection. A placement and its job share
 * one link stream. Messages are JSON; the sealed frames of request and response are binary.
 */
import type { ImageRequestParams } from '@inference/formats';
import {
  JobCompletedSchema,
  JobFailureSchema,
  JobSchema,
  KeyIdSchema,
  MAX_INPUT_IMAGES,
  ModelOfferSchema,
  ProviderIdSchema,
  Sha256HexSchema,
} from '@inference/protocol';
import { MAX_DIGEST_CHARS } from '@inference/scheduler';
import Type, { type Static, type TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { parseMessage } from '../json-message.js';

const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const Ms = Type.Number({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const Id = Type.String({ minLength: 1, maxLength: 128 });
const TrustLevelSchema = Type.Union([Type.Literal('self_signed'), Type.Literal('hardware')]);
const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

/** Maximum excluded providers, and maximum excluded owner accounts, per request. */
export const MAX_EXCLUDED = 256;
/** Maximum prefixes of one prompt in a message. `extractPrefixes` selects them. */
export const MAX_PREFIXES = 10;
/** Maximum wait in the queue of an owning coordinator. */
const MAX_WAIT_MS = 24 * 3_600_000;

const PrefixSchema = Type.Object({ hash: Count, tokens: Type.Number({ minimum: 0 }) });

/** Maximum candidates of a sealed request, and maximum entries of a routing preference. */
const MAX_CANDIDATES = 32;

const FilterSchema = Type.Object({
  ignored_ids: Type.Array(ProviderIdSchema, { maxItems: MAX_CANDIDATES }),
  ignored_serials: Type.Array(Type.String({ minLength: 1, maxLength: 128 }), { maxItems: MAX_CANDIDATES }),
  quantizations: nullable(Type.Array(Type.String({ maxLength: 32 }), { maxItems: 64 })),
  serves_fallback_models: Type.Boolean(),
  serves_choices: Type.Optional(Type.Boolean()),
  /** Number of input images, at least 1; absent: none. Peers of earlier versions ignore this member. */
  images: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_INPUT_IMAGES })),
});

export const PlacementRequestSchema = Type.Object({
  model: Type.String({ minLength: 1, maxLength: 256 }),
  account_id: Id,
  provider_serial: nullable(Type.String({ minLength: 1, maxLength: 128 })),
  provider_id: nullable(ProviderIdSchema),
  /** Only these providers may serve. Peers of earlier versions ignore this member, so the asking coordinator checks the result. */
  candidates: Type.Optional(Type.Array(ProviderIdSchema, { minItems: 1, maxItems: MAX_CANDIDATES })),
  /** Providers that the client's routing preferences exclude. Peers of earlier versions ignore this member. */
  filter: Type.Optional(FilterSchema),
  /** Order of providers that the client prefers. Peers of earlier versions ignore this member. */
  sort: Type.Optional(Type.Enum(['throughput', 'latency'])),
  /** Providers of earlier attempts. */
  exclude: Type.Array(ProviderIdSchema, { maxItems: MAX_EXCLUDED }),
  /** Accounts whose providers must not serve. */
  excluded_owners: Type.Array(Id, { maxItems: MAX_EXCLUDED }),
  trust_floor: nullable(TrustLevelSchema),
  /** Whether the client requires a higher trust level than the model does. */
  own_floor: Type.Boolean(),
  prompt_tokens: Type.Number({ minimum: 0 }),
  completion_tokens: Type.Number({ minimum: 0 }),
  prefixes: Type.Array(PrefixSchema, { maxItems: MAX_PREFIXES }),
  /** Whether the answer is verified before delivery, so that a false one can be discarded. */
  revocable: Type.Boolean(),
  retried: Type.Boolean(),
  /** Restricts the placement to providers that have the model in memory or are loading it. */
  loaded_only: Type.Boolean(),
  /** Restricts the placement to providers without a running job. */
  idle_only: Type.Boolean(),
  /** Maximum wait in the owning coordinator's queue. 0: no wait. */
  wait_ms: Type.Number({ minimum: 0, maximum: MAX_WAIT_MS }),
  image: nullable(
    Type.Object({
      count: Type.Integer({ minimum: 1, maximum: 64 }),
      size: Type.Unsafe<ImageRequestParams['size']>(nullable(Type.String({ maxLength: 32 }))),
      pixels: Type.String({ pattern: '^[1-9][0-9]{1,3}x[1-9][0-9]{1,3}$' }),
    }),
  ),
});
export type PlacementRequestMessage = Static<typeof PlacementRequestSchema>;

/** State of a provider at the time of a placement. Facts that stay constant are in the provider description. */
export const ProviderStateSchema = Type.Object({
  provider_id: ProviderIdSchema,
  session_id: Id,
  key_id: KeyIdSchema,
  /** Sealing keys that the provider accepts. Coordinators of earlier versions omit this member; then only `key_id` is accepted. */
  accepted_key_ids: Type.Optional(Type.Array(KeyIdSchema, { maxItems: 4 })),
  offer: ModelOfferSchema,
  used_slots: Count,
  trust_level: TrustLevelSchema,
  is_attested: Type.Boolean(),
  is_proven: Type.Boolean(),
  /** Highest plausible decode rate in tokens per second; null: any. */
  max_plausible_tps: nullable(Type.Number({ minimum: 0 })),
  owner_account_id: nullable(Id),
});
export type ProviderState = Static<typeof ProviderStateSchema>;

const PlacedSchema = Type.Object({
  type: Type.Literal('placed'),
  provider: ProviderStateSchema,
  estimate: Type.Object({ firstTokenMs: Ms, completionMs: Ms, costMs: Ms }),
  why: Type.String({ maxLength: 32 }),
});

const RefusedSchema = Type.Object({
  type: Type.Literal('refused'),
  /** `busy`: the request does not wait (`wait_ms` 0 or `idle_only`), and no slot is free or no provider idle. */
  reason: Type.Enum([
    'busy',
    'no_such_serial',
    'all_failed',
    'below_trust_floor',
    'none_routable',
    'timeout',
    'queue_full',
    'hopeless',
    'aborted',
  ]),
  retry_after_ms: nullable(Ms),
  /** With `no_such_serial`: matching providers are connected, but cannot read the images. Earlier versions omit this member. */
  lacks_vision: Type.Optional(Type.Boolean()),
  /** With `busy`: current digest of the model. Absent if no provider serves the model, and from coordinators of earlier versions. */
  digest: Type.Optional(Type.String({ maxLength: MAX_DIGEST_CHARS })),
});

/** Messages from the owning to the asking coordinator. */
const OwnerMessageSchema = Type.Union([
  PlacedSchema,
  RefusedSchema,
  /** Progress of sending the request to the provider. `sent`: its first message has left the send queue. */
  Type.Object({ type: Type.Literal('sending'), sent: Type.Boolean() }),
  Type.Object({ type: Type.Literal('accepted') }),
  Type.Object({ type: Type.Literal('progressed') }),
  Type.Object({ type: Type.Literal('completed'), message: JobCompletedSchema }),
  Type.Object({ type: Type.Literal('failed'), failure: JobFailureSchema }),
  /** The provider's connection ended before the job. */
  Type.Object({ type: Type.Literal('lost') }),
]);
export type OwnerMessage = Static<typeof OwnerMessageSchema>;
export type PlacedMessage = Static<typeof PlacedSchema>;

/** Messages from the asking to the owning coordinator. */
const AskerMessageSchema = Type.Union([
  /** Starts the job. The sealed request follows in `frames` binary messages. */
  Type.Object({ type: Type.Literal('start'), job: JobSchema, frames: Type.Integer({ minimum: 0, maximum: 4096 }) }),
  /** Allows the provider to send further response bytes. */
  Type.Object({ type: Type.Literal('credit'), bytes: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }) }),
  /** Asks the provider to stop and to sign its output so far. */
  Type.Object({ type: Type.Literal('recall') }),
  Type.Object({ type: Type.Literal('cancel') }),
]);
export type AskerMessage = Static<typeof AskerMessageSchema>;

/** Finding: observation about a provider during a job, for its owning coordinator. See `JobFinding`. */
export const FindingSchema = Type.Object({
  provider_id: ProviderIdSchema,
  session_id: Id,
  finding: Type.Union([
    Type.Object({
      kind: Type.Union([Type.Literal('busy'), Type.Literal('draining'), Type.Literal('slow'), Type.Literal('answer_verified')]),
    }),
    Type.Object({
      kind: Type.Literal('fault'),
      fault: Type.Union([Type.Literal('failed'), Type.Literal('timed_out'), Type.Literal('unverified'), Type.Literal('misbehaved')]),
      reason: Type.String({ pattern: '^[A-Za-z0-9_.:-]{1,128}$' }),
    }),
    Type.Object({ kind: Type.Literal('protocol_broken'), reason: Type.String({ pattern: '^[A-Za-z0-9_.:-]{1,128}$' }) }),
    Type.Object({
      kind: Type.Literal('answer_settled'),
      model: Type.String({ minLength: 1, maxLength: 256 }),
      completionTokens: Count,
      cachedTokens: Count,
      weightsSha256: Type.Optional(Sha256HexSchema),
      prefixes: Type.Array(PrefixSchema, { maxItems: MAX_PREFIXES }),
      sample: nullable(
        Type.Object({
          promptTokens: Count,
          cachedTokens: Type.Optional(Count),
          completionTokens: Count,
          streamed: Type.Boolean(),
          promptOnly: Type.Optional(Type.Boolean()),
          firstContentMs: Ms,
          elapsedMs: Ms,
          otherJobs: Type.Integer(),
        }),
      ),
      tokenCounts: nullable(Type.Object({ hiddenTokens: Count, completionTokens: Count })),
    }),
  ]),
});
export type FindingMessage = Static<typeof FindingSchema>;

const DescribeRequestSchema = Type.Object({ provider_id: ProviderIdSchema, session_id: Id });
export type DescribeRequest = Static<typeof DescribeRequestSchema>;

const placementRequest = Compile(PlacementRequestSchema);
const ownerMessage = Compile(OwnerMessageSchema);
const askerMessage = Compile(AskerMessageSchema);
const finding = Compile(FindingSchema);
const describeRequest = Compile(DescribeRequestSchema);

// The parsers return null for a message that violates the schema.
export const parsePlacementRequest = (bytes: Uint8Array): PlacementRequestMessage | null => parseMessage(bytes, placementRequest);
export const parseOwnerMessage = (bytes: Uint8Array): OwnerMessage | null => parseMessage(bytes, ownerMessage);
export const parseAskerMessage = (bytes: Uint8Array): AskerMessage | null => parseMessage(bytes, askerMessage);
export const parseFinding = (bytes: Uint8Array): FindingMessage | null => parseMessage(bytes, finding);
export const parseDescribeRequest = (bytes: Uint8Array): DescribeRequest | null => parseMessage(bytes, describeRequest);

const ClaimantsSchema = Type.Array(Type.Object({ providerId: ProviderIdSchema, trustLevel: nullable(TrustLevelSchema) }), {
  maxItems: 10_000,
});
const claimants = Compile(ClaimantsSchema);
/** Answer to a request of kind `claimants`: the providers that claim a serial number. */
export const parseClaimants = (bytes: Uint8Array): Static<typeof ClaimantsSchema> | null => parseMessage(bytes, claimants);
