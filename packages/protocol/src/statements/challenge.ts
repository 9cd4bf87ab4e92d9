/** Challenge response: the session's nonce and the machine's current posture (security settings), signed by the enclave key. */
import Type, { type Static } from 'typebox';
import { Base64Schema, MillisecondsSchema } from '../ids.js';
import { PostureSchema } from './attestation.js';
import { statementOpener } from './signed-statement.js';

const ChallengeAnswerSchema = Type.Object({
  v: Type.Literal(1),
  /** The 32 bytes of the challenge in base64, unchanged. */
  nonce: Base64Schema,
  /** Session of the nonce, so that the response is invalid on any other connection. */
  session_id: Type.String({ minLength: 1, maxLength: 64 }),
  posture: PostureSchema,
  issued_at: MillisecondsSchema,
});
export type ChallengeAnswer = Static<typeof ChallengeAnswerSchema>;

export const openChallengeAnswer = statementOpener('challenge', ChallengeAnswerSchema);
