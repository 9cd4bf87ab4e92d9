/** Reasons why a provider did not finish a job. Codes alone: no free text of a provider reaches a client. */
import Type, { type Static } from 'typebox';

/**
 * `client`: returned, never retried. `provider`, `capacity`: retried elsewhere before the first content. `nobody`: cancelled by the
 * coordinator.
 */
export const JOB_FAILURES = {
  invalid_request: { blame: 'client' },
  /** The engine lacks a requested feature; `param` names the field. */
  unsupported: { blame: 'client' },
  context_length_exceeded: { blame: 'client' },
  /** An image cannot be decoded; `param` names its part. Only for requests with images. */
  invalid_image: { blame: 'client' },
  busy: { blame: 'capacity' },
  draining: { blame: 'capacity' },
  /** The provider is leaving or away. Since protocol version 2; version 1 peers get `busy`. */
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
  /** Request field at fault, such as `messages[0].content`. */
  param: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9_.\\[\\]]{1,64}$' })),
  /**
   * `context_length_exceeded`: the model's limit in tokens; `actual` is the request's size. `unsupported`: maximum value of the
   * field.
   */
  limit: Type.Optional(Type.Integer({ minimum: 0 })),
  actual: Type.Optional(Type.Integer({ minimum: 0 })),
});
export type JobFailure = Static<typeof JobFailureSchema>;
