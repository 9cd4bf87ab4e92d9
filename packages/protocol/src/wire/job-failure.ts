/**
 * Why a provider did not finish a job. Codes and bounded facts only: a provider's free text never reaches a client, the
 * coordinator words the message itself.
 */
import Type, { type Static } from 'typebox';

/**
 * Who is to blame decides what the coordinator does: `client` is answered and never retried, `provider` and `capacity`
 * are retried elsewhere before the first content, `nobody` is a job that the coordinator itself cancelled.
 */
export const JOB_FAILURES = {
  invalid_request: { blame: 'client' },
  /** The request asks for something that this provider's engine does not offer; `param` names it. */
  unsupported: { blame: 'client' },
  context_length_exceeded: { blame: 'client' },
  busy: { blame: 'capacity' },
  draining: { blame: 'capacity' },
  /** It is leaving or away. Known from version 2 of the protocol on; a peer of version 1 is told `busy`. */
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
   * With `context_length_exceeded`: the model's limit and what the request came to, in tokens. With `unsupported`: the
   * largest value that the field may have, where its value is too large.
   */
  limit: Type.Optional(Type.Integer({ minimum: 0 })),
  actual: Type.Optional(Type.Integer({ minimum: 0 })),
});
export type JobFailure = Static<typeof JobFailureSchema>;
