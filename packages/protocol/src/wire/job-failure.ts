/** Reasons why a provider did not finish a job: codes, field paths and numbers, so no free text of a provider reaches a client. */
import Type, { type Static } from 'typebox';

/**
 * `blame` decides about retries. `client`: never retried. `provider`, `capacity`: retried on another provider before the first
 * content. `nobody`: the coordinator cancelled the job.
 */
export const JOB_FAILURES = {
  invalid_request: { blame: 'client' },
  /** The engine does not support a field of the request; `param` names the field. */
  unsupported: { blame: 'client' },
  context_length_exceeded: { blame: 'client' },
  /** An input image cannot be decoded; `param` names its part. */
  invalid_image: { blame: 'client' },
  busy: { blame: 'capacity' },
  draining: { blame: 'capacity' },
  /** The provider is leaving or away. Since protocol version 2; coordinators with version 1 get `busy`. */
  away: { blame: 'capacity' },
  model_not_loaded: { blame: 'capacity' },
  unknown_key: { blame: 'provider' },
  bad_context: { blame: 'provider' },
  expired: { blame: 'provider' },
  replayed: { blame: 'provider' },
  unsealing_failed: { blame: 'provider' },
  engine_failed: { blame: 'provider' },
  signing_failed: { blame: 'provider' },
  internal: { blame: 'provider' },
  cancelled: { blame: 'nobody' },
} as const satisfies Record<string, { blame: 'client' | 'provider' | 'capacity' | 'nobody' }>;

export type JobFailureCode = keyof typeof JOB_FAILURES;

export const JobFailureSchema = Type.Object({
  code: Type.Enum(Object.keys(JOB_FAILURES) as [JobFailureCode, ...JobFailureCode[]]),
  /** The invalid request field, such as `messages[0].content`. */
  param: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9_.\\[\\]]{1,64}$' })),
  /** For `context_length_exceeded`: the model's context length in tokens. For `unsupported`: the maximum value of the field. */
  limit: Type.Optional(Type.Integer({ minimum: 0 })),
  /** For `context_length_exceeded`: the tokens that the request needs. */
  actual: Type.Optional(Type.Integer({ minimum: 0 })),
});
export type JobFailure = Static<typeof JobFailureSchema>;
