/**
 * Messages with which an agent requests enrolment of its Mac in device management.
 *
 * The enrolment profile is bound to the enclave key of the session.
 */
import Type, { type Static } from 'typebox';
import { MillisecondsSchema } from '../ids.js';

/** Provider → coordinator: request to enrol this Mac. */
export const EnrolmentRequestSchema = Type.Object({ type: Type.Literal('enrolment_request') });

/** Coordinator → provider: single-use URL of the enrolment profile. The owner must open it on this Mac before `expires_at`. */
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
  /** The last request was too recent, or the coordinator failed. */
  'try_later',
]);
export type EnrolmentRefusal = Static<typeof EnrolmentRefusalSchema>;

/** Coordinator → provider: the request was refused. */
export const EnrolmentRefusedSchema = Type.Object({ type: Type.Literal('enrolment_refused'), reason: EnrolmentRefusalSchema });
