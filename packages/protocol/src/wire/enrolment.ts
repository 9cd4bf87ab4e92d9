/**
 * How a provider asks for its device-management enrolment: over its own authenticated session, so that the enclave key of the
 * session is the key that the device will stand for. The answer is an address that serves the profile once.
 */
import Type, { type Static } from 'typebox';
import { MillisecondsSchema } from '../ids.js';

/** From a provider: I would like to enrol this Mac. */
export const EnrolmentRequestSchema = Type.Object({ type: Type.Literal('enrolment_request') });

/** To a provider: open this address on this Mac, once, before it expires, and install what comes. */
export const EnrolmentSchema = Type.Object({
  type: Type.Literal('enrolment'),
  url: Type.String({ minLength: 1, maxLength: 2048, pattern: '^https?://[\\x21-\\x7e]+$' }),
  expires_at: MillisecondsSchema,
});

export const EnrolmentRefusalSchema = Type.Enum([
  /** This coordinator manages no devices. */
  'not_offered',
  /** The provider belongs to no account yet. */
  'not_linked',
  /** Asked again before the last offer was answered, or failed here. */
  'try_later',
]);
export type EnrolmentRefusal = Static<typeof EnrolmentRefusalSchema>;

export const EnrolmentRefusedSchema = Type.Object({ type: Type.Literal('enrolment_refused'), reason: EnrolmentRefusalSchema });
