/** The secrets of an enrolment: 32 random bytes each, of which only hashes are stored. */
import { createHash, randomBytes } from 'node:crypto';

/** Query parameter of the management addresses in a profile; management servers pass it on with everything a device sends. */
export const ENROLMENT_PARAMETER = 'enrolment';

export function newToken(): string {
  return randomBytes(32).toString('base64url');
}

/** Hexadecimal SHA-256. */
export function hashToken(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}
