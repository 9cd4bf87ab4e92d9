/**
 * Message `rejected`, with which a coordinator ends a session: a code, the exact reason for a rejected statement, and a text.
 */
import Type, { type Static } from 'typebox';
import { STATEMENT_PROBLEMS } from '../statements/signed-statement.js';

const RejectionCodeSchema = Type.Enum([
  'version_unsupported',
  'bad_message',
  'out_of_turn',
  'too_large',
  'attestation_refused',
  'challenge_failed',
  'posture_insufficient',
  'simulated_enclave_refused',
  'key_refused',
  'replaced',
  'too_slow',
  'misbehaved',
  'shutting_down',
]);
export type RejectionCode = Static<typeof RejectionCodeSchema>;

const PROBLEMS = (['attestation', 'challenge', 'key'] as const).flatMap((kind) =>
  STATEMENT_PROBLEMS.map((problem) => `${kind}_${problem}` as const),
);

const REJECTION_REASONS = [
  ...PROBLEMS,
  /** The payload is not JSON, or has no public key. */
  'attestation_unreadable',
  'attestation_from_future',
  'attestation_too_old',
  /** The attestation claims that a software key is in an enclave. */
  'attestation_contradiction',
  /** A name has characters that are unsafe in headers or pages. */
  'attestation_unsafe_text',
  'no_secure_enclave',
  'sip_disabled',
  'secure_boot_disabled',
  'challenge_other_session',
  'challenge_replayed',
  'challenge_unknown',
  'challenge_clock',
  /** Challenge response and attestation disagree about the enclave. */
  'challenge_contradiction',
  'challenge_unanswered',
  'key_size',
  'key_other_provider',
  'key_id_differs',
  'key_other_attestation',
  'key_lifetime',
  'key_not_yet_valid',
  'key_expired',
] as const;
export type RejectionReason = (typeof REJECTION_REASONS)[number];

/** Ends the session; the socket closes after this message. */
export const RejectedSchema = Type.Object({
  type: Type.Literal('rejected'),
  code: RejectionCodeSchema,
  /** One of {@link REJECTION_REASONS}; newer coordinators may add reasons. */
  reason: Type.Optional(Type.String({ pattern: '^[a-z_]{1,64}$' })),
  /** Explanation for the owner. */
  message: Type.String({ maxLength: 1024 }),
});
