/** Messages by which `NetworkPermits` requests permits of one key from the key's home coordinator, which answers with a grant. */
import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import { encodeMessage, parseMessage } from '../json-message.js';

const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

const PermitRequestSchema = Type.Object({
  limit: Type.String({ minLength: 1, maxLength: 64 }),
  /** Hash of the limit's name and the key. */
  key: Type.String({ pattern: '^[0-9a-f]{32}$' }),
  /** Smallest useful grant: permits for the smallest waiting request. */
  min: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
  /** Permits for all waiting requests together. */
  need: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
  /** Permits for waiting and expected requests. */
  want: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
  /** Permits used in the current window under an earlier home, and the rest of the window. Null: the home has not changed. */
  earlier: Type.Union([Type.Null(), Type.Object({ used: Count, reset_ms: Count })]),
});
export type PermitRequest = Static<typeof PermitRequestSchema>;

/** `remaining`: permits left at the home. `reset_ms`: time until the window ends. */
const GrantSchema = Type.Object({ granted: Count, remaining: Count, reset_ms: Count });
export type Grant = Static<typeof GrantSchema>;

const requests = Compile(PermitRequestSchema);
const grants = Compile(GrantSchema);

export function encodePermits(message: PermitRequest | Grant): Uint8Array {
  return encodeMessage(message);
}

/** Null: the message violates the schema. */
export function decodePermitRequest(bytes: Uint8Array): PermitRequest | null {
  return parseMessage(bytes, requests);
}

export function decodeGrant(bytes: Uint8Array): Grant | null {
  return parseMessage(bytes, grants);
}
