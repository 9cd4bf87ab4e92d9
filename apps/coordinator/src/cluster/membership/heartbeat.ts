/**
 * Heartbeat: message that a coordinator publishes about every second, with its changed models. Schema, encoder and decoder.
 *
 * A peer can also request all models, and gets a heartbeat as the reply. The sender's id is not in the message but in the NATS subject,
 * because NATS permissions can restrict each coordinator to its own subject.
 */
import { ImageOfferSchema, ModelTypeSchema, VisionOfferSchema } from '@inference/protocol';
import { encodeDigest, MAX_DIGEST_CHARS, type ModelDigest } from '@inference/scheduler';
import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import { encodeMessage, parseMessage } from '../json-message.js';

/**
 * Version of the JSON messages between coordinators. The previous and the next version are also accepted.
 *
 * A new optional member does not need a new version. A new value of an existing member does, because earlier versions reject it.
 */
export const CLUSTER_VERSION = 1;

const Sequence = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

const ModelSchema = Type.Object({
  id: Type.String({ minLength: 1, maxLength: 256 }),
  type: ModelTypeSchema,
  /** Encoded {@link ModelDigest}: slots, queue and throughput. Null: no provider serves the model any more. */
  digest: Type.Union([Type.String({ maxLength: MAX_DIGEST_CHARS }), Type.Null()]),
  /** Distinct image offers, the most frequent first. */
  images: Type.Array(ImageOfferSchema, { maxItems: 8 }),
  /** Limits for input images. Absent if the model reads no images, and from coordinators of earlier versions. */
  vision: Type.Optional(VisionOfferSchema),
});

const HeartbeatSchema = Type.Object({
  version: Type.Integer({ minimum: 1 }),
  /** Random number of this process, new at each start. */
  epoch: Type.String({ pattern: '^[0-9a-f]{16}$' }),
  /** Increases by 1 with every published heartbeat of an epoch. A reply with all models repeats the last number. */
  sequence: Sequence,
  /** Sender's clock, in milliseconds since 1970. */
  at: Sequence,
  /** The sender is shutting down and accepts no more placements. */
  draining: Type.Boolean(),
  goodbye: Type.Boolean(),
  /** Connected providers, registered or not. */
  providers: Type.Integer({ minimum: 0 }),
  models: Type.Array(ModelSchema, { maxItems: 20_000 }),
});
export type Heartbeat = Static<typeof HeartbeatSchema>;

export interface PublishedModel {
  readonly id: string;
  readonly type: Static<typeof ModelTypeSchema>;
  readonly images: readonly Static<typeof ImageOfferSchema>[];
  /** Null: the model reads no images. */
  readonly vision: Static<typeof VisionOfferSchema> | null;
  readonly digest: ModelDigest;
}

const heartbeatValidator = Compile(HeartbeatSchema);
/** The version is checked first. Other members are read only if the version is supported. */
const versionValidator = Compile(Type.Object({ version: Type.Integer({ minimum: 1 }) }));

/** Maximum models per published heartbeat, to stay far below NATS's maximum payload. */
export const MAX_CHANGES_PER_HEARTBEAT = 200;

export function encodeModel({ id, type, images, vision, digest }: PublishedModel): Heartbeat['models'][number] {
  return { id, type, images: [...images].slice(0, 8), ...(vision === null ? {} : { vision }), digest: encodeDigest(digest) };
}

export function encodeHeartbeat(heartbeat: Heartbeat): Uint8Array {
  return encodeMessage(heartbeat);
}

export type DecodedHeartbeat =
  | { readonly kind: 'heartbeat'; readonly heartbeat: Heartbeat }
  | { readonly kind: 'unsupported_version'; readonly version: number }
  | { readonly kind: 'malformed' };

export function decodeHeartbeat(bytes: Uint8Array): DecodedHeartbeat {
  const message = parseMessage(bytes, versionValidator);
  if (message === null) return { kind: 'malformed' };
  if (Math.abs(message.version - CLUSTER_VERSION) > 1) return { kind: 'unsupported_version', version: message.version };
  return heartbeatValidator.Check(message) ? { kind: 'heartbeat', heartbeat: message } : { kind: 'malformed' };
}
