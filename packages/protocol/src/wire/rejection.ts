/**
 * Why a coordinator ends a session: a code that says what kind of thing was wrong, and where it concerns a statement, the
 * exact reason from a closed list. The provider shows both to its owner.
 */
import Type, { type Static } from 'typebox';
import { STATEMENT_PROBLEMS } from '../statements/signed-statement.js';

export const RejectionCodeSchema = Type.Enum([
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

export const REJECTION_REASONS = [
  ...PROBLEMS,
  /** No JSON, or without a key of its own. */
  'attestation_unreadable',
  'attestation_from_future',
  'attestation_too_old',
  /** It says that a key in software is in an enclave. */
  'attestation_contradiction',
  /** A name in it has characters that a header or a page must not get. */
  'attestation_unsafe_text',
  'no_secure_enclave',
  'sip_disabled',
  'secure_boot_disabled',
  'challenge_other_session',
  'challenge_replayed',
  'challenge_unknown',
  'challenge_clock',
  /** It disagrees with the attestation on the enclave. */
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

/** The session is over; the socket is closed after this message. */
export const RejectedSchema = Type.Object({
  type: Type.Literal('rejected'),
  code: RejectionCodeSchema,
  /** Of {@link REJECTION_REASONS}; a newer coordinator may know others. */
  reason: Type.Optional(Type.String({ pattern: '^[a-z_]{1,64}$' })),
  /** For the owner's eyes. */
  message: Type.String({ maxLength: 1024 }),
});
