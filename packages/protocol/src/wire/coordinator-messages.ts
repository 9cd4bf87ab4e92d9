/** Control messages from coordinator to provider: JSON text frames, distinguished by `type`. Unknown members are tolerated. */
import Type, { type Static } from 'typebox';
import { MAX_E2E_RECIPIENTS } from '../e2e/limits.js';
import { Base64Schema, JobIdSchema, MillisecondsSchema, ProviderIdSchema } from '../ids.js';
import { JobContextSchema } from '../job-context.js';
import { EnrolmentRefusedSchema, EnrolmentSchema } from './enrolment.js';
import { MAX_INPUT_IMAGE_BYTES, MAX_INPUT_IMAGES, MAX_VISION_REQUEST_BYTES } from './limits.js';
import { LinkedSchema, LinkRefusedSchema } from './link.js';
import { InputImageTypeSchema } from './model-offer.js';
import { ModelsRefusedSchema } from './models-refused.js';
import { RejectedSchema } from './rejection.js';
import { OwnerCommandSchema, VersionsSchema } from './remote-control.js';
import { TrustSchema } from './trust-message.js';

/** Response to `hello`: the protocol version to use, and the first challenge. */
const WelcomeSchema = Type.Object({
  type: Type.Literal('welcome'),
  version: Type.Integer({ minimum: 1 }),
  session_id: Type.String({ minLength: 1, maxLength: 64 }),
  /** base64 of 32 random bytes. */
  nonce: Base64Schema,
  server_time: MillisecondsSchema,
  /** Receipt versions that the coordinator accepts. Default: only 1. */
  receipts: Type.Optional(Type.Array(Type.Integer({ minimum: 1 }), { minItems: 1, maxItems: 16 })),
  /**
   * Interval at which the provider sends pings. After two pings without an answer, the provider reconnects. Absent outside a
   * cluster, where no other coordinator could take over.
   */
  heartbeat_ms: Type.Optional(Type.Integer({ minimum: 500, maximum: 60_000 })),
  /** Versions of remote control that the coordinator relays. Absent: none. */
  remote_control_versions: Type.Optional(VersionsSchema),
});

/** Registration is complete. A `trust` message with details follows. */
const RegisteredSchema = Type.Object({
  type: Type.Literal('registered'),
  provider_id: ProviderIdSchema,
  trust_level: Type.Union([Type.Literal('self_signed'), Type.Literal('hardware')]),
  /** Bearer token for `GET /v1/providers/me`, valid during this session. */
  token: Type.Optional(Type.String({ minLength: 16, maxLength: 256, pattern: '^[A-Za-z0-9._~-]+$' })),
});

const ChallengeSchema = Type.Object({ type: Type.Literal('challenge'), nonce: Base64Schema });

/** Marks a job as a sealed request of the end-to-end mode. */
const E2eJobSchema = Type.Object({
  v: Type.Literal(1),
  /** Index of the provider in the context's `recipients`. */
  recipient: Type.Integer({ minimum: 0, maximum: MAX_E2E_RECIPIENTS - 1 }),
});

/** An image that the coordinator fetched from a URL in the request. */
const FetchedImageSchema = Type.Object({
  media_type: InputImageTypeSchema,
  bytes: Type.Integer({ minimum: 1, maximum: MAX_INPUT_IMAGE_BYTES }),
});

/** Starts a job. Request frames with the sealed body follow. */
export const JobSchema = Type.Object({
  type: Type.Literal('job'),
  context: JobContextSchema,
  /** HPKE encapsulated key in base64. In end-to-end mode, the one of this provider's wrapped key. */
  enc: Base64Schema,
  /** Plaintext size of body and fetched images, so that the provider can refuse early. End-to-end: size of the sealed request. */
  request_bytes: Type.Integer({ minimum: 0, maximum: MAX_VISION_REQUEST_BYTES }),
  /** Plaintext response bytes that the provider may send before the next `credit`. End-to-end: bytes of the sealed answer. */
  credit: Type.Integer({ minimum: 1 }),
  /**
   * Present in end-to-end mode. The frames then carry the client's ciphertext and the sealed answer, without a second seal.
   *
   * Sent only to providers that registered `e2e_versions`.
   */
  e2e: Type.Optional(E2eJobSchema),
  /**
   * Images that follow the body in the plaintext: one per distinct URL in the body, in order of first appearance.
   *
   * `overrides.fetched_images` of the context has their hashes.
   */
  fetched_images: Type.Optional(Type.Array(FetchedImageSchema, { minItems: 1, maxItems: MAX_INPUT_IMAGES })),
});

/** Allows the provider to send as many more bytes as the client received. */
const CreditSchema = Type.Object({ type: Type.Literal('credit'), job_id: JobIdSchema, bytes: Type.Integer({ minimum: 1 }) });

/**
 * Cancels a job. A stream with output then ends regularly: the output so far, a final frame, and `job_completed` with finish reason
 * `cancelled`. Any other job ends with `job_failed`, code `cancelled`.
 *
 * The coordinator first sends credit for the output so far.
 */
const CancelSchema = Type.Object({ type: Type.Literal('cancel'), job_id: JobIdSchema });

export const CoordinatorMessageSchemas = {
  welcome: WelcomeSchema,
  registered: RegisteredSchema,
  rejected: RejectedSchema,
  trust: TrustSchema,
  models_refused: ModelsRefusedSchema,
  challenge: ChallengeSchema,
  job: JobSchema,
  credit: CreditSchema,
  cancel: CancelSchema,
  enrolment: EnrolmentSchema,
  enrolment_refused: EnrolmentRefusedSchema,
  linked: LinkedSchema,
  link_refused: LinkRefusedSchema,
  owner_command: OwnerCommandSchema,
} as const;

export type CoordinatorMessage = {
  [K in keyof typeof CoordinatorMessageSchemas]: Static<(typeof CoordinatorMessageSchemas)[K]>;
}[keyof typeof CoordinatorMessageSchemas];
export type JobMessage = Static<typeof JobSchema>;
