/** Messages for the device enrolment of a Mac. The enrolment profile is bound to the enclave key of the requesting session. */
import Type, { type Static } from 'typebox';
import { MillisecondsSchema } from '../ids.js';

/** Provider → coordinator: request to enrol this Mac. */
export const EnrolmentRequestSchema = Type.Object({ type: Type.Literal('enrolment_request') });

/** Coordinator → provider: address of the profile, which works once. The owner opens the address on this Mac before expiry. */
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
  /** The provider asked too soon after the last request, or the coordinator failed. */
  'try_later',
]);
export type EnrolmentRefusal = Static<typeof EnrolmentRefusalSchema>;

/** Coordinator → provider: no enrolment. */
export const EnrolmentRefusedSchema = Type.Object({ type: Type.Literal('enrolment_refused'), reason: EnrolmentRefusalSchema });
