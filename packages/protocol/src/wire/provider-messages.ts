/** Control messages from provider to coordinator: JSON text frames, distinguished by `type`. Unknown members are tolerated. */
import Type, { type Static } from 'typebox';
import { Base64Schema, JobIdSchema, Sha256HexSchema } from '../ids.js';
import { labelSchema } from '../label.js';
import { SignedStatementSchema } from '../statements/signed-statement.js';
import { AvailabilitySchema, ReportedAvailabilitySchema } from './availability.js';
import { EnrolmentRequestSchema } from './enrolment.js';
import { JobFailureSchema } from './job-failure.js';
import { LinkSchema } from './link.js';
import { HardwareSchema, ModelOfferSchema } from './model-offer.js';
import { MachineSettingsMessageSchema, OwnerCommandResultSchema, RemoteControlSchema } from './remote-control.js';

/** First message on a connection. */
const HelloSchema = Type.Object({
  type: Type.Literal('hello'),
  versions: Type.Array(Type.Integer({ minimum: 1 }), { minItems: 1, maxItems: 16 }),
  agent: Type.Object({ name: labelSchema(64), version: labelSchema(64) }),
});

/** Response to `welcome`: the provider's identity, models, and answer to the first challenge. */
const RegisterSchema = Type.Object({
  type: Type.Literal('register'),
  attestation: SignedStatementSchema,
  challenge: SignedStatementSchema,
  key: SignedStatementSchema,
  hardware: HardwareSchema,
  models: Type.Array(ModelOfferSchema, { maxItems: 64 }),
  /** Maximum concurrent jobs. */
  slots: Type.Integer({ minimum: 1, maximum: 1024 }),
  /** Version of the receipts that the provider signs in this session. Default: 1. */
  receipt_version: Type.Optional(Type.Union([Type.Literal(1), Type.Literal(2)])),
  /** Supported versions of the end-to-end mode. Absent: none. */
  e2e_versions: Type.Optional(Type.Array(Type.Integer({ minimum: 1 }), { minItems: 1, maxItems: 16 })),
  /** Whether the agent accepts jobs for a fallback model, which the body names in `models`. Default: false. */
  fallback_models: Type.Optional(Type.Boolean()),
  /** Whether the agent accepts requests for several choices (`n`). Default: false. */
  choices: Type.Optional(Type.Boolean()),
  /** Default: serving. Included here, so that a provider that connects while paused never gets a job. */
  availability: Type.Optional(ReportedAvailabilitySchema),
  /** Support for remote control from the console. Absent: none. */
  remote_control: Type.Optional(RemoteControlSchema),
});

const ChallengeAnswerMessageSchema = Type.Object({ type: Type.Literal('challenge_answer'), challenge: SignedStatementSchema });

/** New sealing key. For a grace period, the provider still accepts jobs sealed to the previous key. */
const KeyUpdateSchema = Type.Object({ type: Type.Literal('key_update'), key: SignedStatementSchema });

/** Replaces the list of served models. */
const ModelsSchema = Type.Object({ type: Type.Literal('models'), models: Type.Array(ModelOfferSchema, { maxItems: 64 }) });

/** Current load; sent on changes and as a heartbeat. */
const LoadSchema = Type.Object({
  type: Type.Literal('load'),
  active_jobs: Type.Integer({ minimum: 0 }),
  /**
   * Latest measured decode rate of one stream, tokens per second. The coordinator lowers implausible rates: a false measurement must not
   * end a session.
   */
  decode_tps: Type.Optional(Type.Number({ minimum: 0 })),
  /** Latest measured prompt processing rate, tokens per second. Lowered like `decode_tps`. */
  prefill_tps: Type.Optional(Type.Number({ minimum: 0 })),
  // Condition of the machine. An absent value could not be read; the last reported value remains valid.
  thermal: Type.Optional(Type.Union([Type.Literal('nominal'), Type.Literal('fair'), Type.Literal('serious'), Type.Literal('critical')])),
  memory_pressure: Type.Optional(Type.Union([Type.Literal('normal'), Type.Literal('warning'), Type.Literal('critical')])),
  /** `low_battery`: too low to accept jobs. */
  power: Type.Optional(Type.Union([Type.Literal('mains'), Type.Literal('battery'), Type.Literal('low_battery')])),
});

/** The provider takes no new jobs, and finishes the running ones. */
const DrainingSchema = Type.Object({ type: Type.Literal('draining') });

/** The provider opened and checked the body, and passed the job to the engine. */
const JobAcceptedSchema = Type.Object({ type: Type.Literal('job_accepted'), job_id: JobIdSchema });

/** Heartbeat during a long prompt: the engine made progress since the last message, but has no output yet. */
const JobProgressSchema = Type.Object({ type: Type.Literal('job_progress'), job_id: JobIdSchema });

const JobFailedSchema = Type.Object({ type: Type.Literal('job_failed'), job_id: JobIdSchema, failure: JobFailureSchema });

/**
 * Response signature and receipt, sent after the final frame. In end-to-end mode, `response_sha256` equals the receipt's
 * `sealed_response_sha256`.
 */
export const JobCompletedSchema = Type.Object({
  type: Type.Literal('job_completed'),
  job_id: JobIdSchema,
  /** Hexadecimal SHA-256 of the signed response bytes. */
  response_sha256: Sha256HexSchema,
  /** base64 strict-DER signature over the 64 ASCII digits of `response_sha256`. */
  signature: Base64Schema,
  receipt: SignedStatementSchema,
});

export const ProviderMessageSchemas = {
  hello: HelloSchema,
  register: RegisterSchema,
  challenge_answer: ChallengeAnswerMessageSchema,
  key_update: KeyUpdateSchema,
  models: ModelsSchema,
  load: LoadSchema,
  draining: DrainingSchema,
  availability: AvailabilitySchema,
  job_accepted: JobAcceptedSchema,
  job_progress: JobProgressSchema,
  job_failed: JobFailedSchema,
  job_completed: JobCompletedSchema,
  enrolment_request: EnrolmentRequestSchema,
  link: LinkSchema,
  machine_settings: MachineSettingsMessageSchema,
  owner_command_result: OwnerCommandResultSchema,
} as const;

export type ProviderMessage = {
  [K in keyof typeof ProviderMessageSchemas]: Static<(typeof ProviderMessageSchemas)[K]>;
}[keyof typeof ProviderMessageSchemas];
export type Register = Static<typeof RegisterSchema>;
export type JobCompleted = Static<typeof JobCompletedSchema>;
