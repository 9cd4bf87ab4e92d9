/** Device enrolment, requested over the session of an enclave key, which the profile is bound to. The address works once. */
import Type, { type Static } from 'typebox';
import { MillisecondsSchema } from '../ids.js';

/** Provider → coordinator: request to enrol this Mac. */
export const EnrolmentRequestSchema = Type.Object({ type: Type.Literal('enrolment_request') });

/** Coordinator → provider: one-time address of the profile; open on this Mac before expiry and install the profile. */
export const EnrolmentSchema = Type.Object({
  type: Type.Literal('enrolment'),
  url: Type.String({ minLength: 1, maxLength: 2048, pattern: '^https?://[\\x21-\\x7e]+$' }),
  expires_at: MillisecondsSchema,
});

const EnrolmentRefusalSchema = Type.Enum([
  /** This coordinator has no device management. */
  'not_offered',
  /** The provider belongs to no account yet. */
  'not_linked',
  /** Asked again before the last offer was answered, or failed here. */
  'try_later',
]);
export type EnrolmentRefusal = Static<typeof EnrolmentRefusalSchema>;

export const EnrolmentRefusedSchema = Type.Object({ type: Type.Literal('enrolment_refused'), reason: EnrolmentRefusalSchema });
