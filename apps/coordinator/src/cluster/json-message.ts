/** Encodes JSON messages between coordinators, and checks received ones against a schema. */

/** The used part of a compiled TypeBox schema. */
export interface MessageValidator<T> {
  Check(value: unknown): value is T;
}

export function encodeMessage(message: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(message));
}

/** Null: the bytes are not JSON, or violate the schema. */
export function parseMessage<T>(bytes: Uint8Array, validator: MessageValidator<T>): T | null {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString());
  } catch {
    return null;
  }
  return validator.Check(value) ? value : null;
}
