/**
 * Signed statements: JSON payloads signed by an enclave key, such as attestations and receipts.
 *
 * The exact payload bytes are transmitted, so verifiers need not serialize again. Each kind has its own signing prefix, so a
 * signature for one kind never verifies for another.
 */
import Type, { type Static, type TSchema } from 'typebox';
import { concatBytes, fromBase64, fromUtf8, utf8 } from '../bytes.js';
import { canonicalJson, type JsonValue } from '../canonical-json.js';
import { Base64Schema } from '../ids.js';
import { lazyValidator } from '../lazy-validator.js';

export type StatementKind = 'attestation' | 'challenge' | 'key' | 'receipt' | 'e2e-receipt';

export const SignedStatementSchema = Type.Object({
  /** base64 of the payload: canonical JSON (RFC 8785) in UTF-8. */
  payload: Base64Schema,
  /** base64 of a strict-DER ECDSA P-256 SHA-256 signature over prefix ‖ 0x00 ‖ payload. */
  signature: Base64Schema,
});
export type SignedStatement = Static<typeof SignedStatementSchema>;

/** Verifies an ECDSA P-256 SHA-256 signature in strict DER by a 65-byte x963 public key. Never throws. */
export type VerifyP256 = (publicKey: Uint8Array, message: Uint8Array, signatureDer: Uint8Array) => boolean;

/** {@link VerifyP256} on another thread. Never rejects. */
export type VerifyP256Async = (...input: Parameters<VerifyP256>) => Promise<boolean>;

/** Reasons why a statement is rejected. */
export const STATEMENT_PROBLEMS = ['bad_encoding', 'bad_signature', 'not_canonical', 'bad_schema', 'unknown_critical'] as const;
export type StatementProblem = (typeof STATEMENT_PROBLEMS)[number];

export class StatementError extends Error {
  constructor(
    readonly kind: StatementKind,
    readonly problem: StatementProblem,
    detail: string,
  ) {
    super(`${kind} statement: ${detail}`);
    this.name = 'StatementError';
  }
}

/** Additional check beyond the schema. Returns a description of the problem, or null. */
type StatementCheck<Value> = (value: Value) => string | null;

/** The signed bytes: `"inference/<kind>/v1" 0x00 ‖ payload`. */
export function statementBytes(kind: StatementKind, payload: Uint8Array): Uint8Array {
  return concatBytes(utf8(`inference/${kind}/v1\0`), payload);
}

/** A verified statement. `payload`: the exact bytes of the payload. */
export interface OpenedStatement<T> {
  readonly value: T;
  readonly payload: Uint8Array;
  readonly signature: Uint8Array;
}

/**
 * Returns a verifier for one kind of statement. Checks base64, signature, canonical JSON (no duplicate members) and schema.
 *
 * Ignores unknown members, unless the statement lists them in `crit` (RFC 7515 section 4.1.11). Throws {@link StatementError}.
 */
export function statementOpener<Schema extends TSchema>(kind: StatementKind, schema: Schema, check?: StatementCheck<Static<Schema>>) {
  const read = payloadReader(kind, schema, check);
  return (statement: SignedStatement, publicKey: Uint8Array, verify: VerifyP256): OpenedStatement<Static<Schema>> => {
    const { payload, signature } = decodeStatement(kind, statement);
    requireVerified(kind, verify(publicKey, statementBytes(kind, payload), signature));
    return { value: read(payload), payload, signature };
  };
}

/** Like {@link statementOpener}, for signature verification on another thread. Rejects with {@link StatementError}. */
export function asyncStatementOpener<Schema extends TSchema>(kind: StatementKind, schema: Schema, check?: StatementCheck<Static<Schema>>) {
  const read = payloadReader(kind, schema, check);
  return async (statement: SignedStatement, publicKey: Uint8Array, verify: VerifyP256Async): Promise<OpenedStatement<Static<Schema>>> => {
    const { payload, signature } = decodeStatement(kind, statement);
    requireVerified(kind, await verify(publicKey, statementBytes(kind, payload), signature));
    return { value: read(payload), payload, signature };
  };
}

function decodeStatement(kind: StatementKind, statement: SignedStatement): { payload: Uint8Array; signature: Uint8Array } {
  return { payload: decode(kind, 'payload', statement.payload), signature: decode(kind, 'signature', statement.signature) };
}

function requireVerified(kind: StatementKind, verified: boolean): void {
  if (!verified) throw new StatementError(kind, 'bad_signature', 'the signature does not verify');
}

/** Returns a parser for payloads whose signature was verified. */
function payloadReader<Schema extends TSchema>(
  kind: StatementKind,
  schema: Schema,
  check: StatementCheck<Static<Schema>> = () => null,
): (payload: Uint8Array) => Static<Schema> {
  const validatorOf = lazyValidator(schema);
  const known = new Set(Object.keys((schema as { properties?: object }).properties ?? {}));
  return (payload) => {
    const value = parseCanonical(kind, payload);
    requireKnown(kind, value, known);
    const validator = validatorOf();
    if (validator.Check(value)) {
      const problem = check(value as Static<Schema>);
      if (problem === null) return value as Static<Schema>;
      throw new StatementError(kind, 'bad_schema', problem);
    }
    const [first] = validator.Errors(value);
    throw new StatementError(kind, 'bad_schema', `${first?.instancePath || '/'} ${first?.message ?? 'is not valid'}`);
  };
}

function requireKnown(kind: StatementKind, value: unknown, known: ReadonlySet<string>): void {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, 'crit')) return;
  const { crit } = value as { crit: unknown };
  const names = Array.isArray(crit) ? crit : [];
  if (names.length === 0 || new Set(names).size !== names.length || !names.every((name) => typeof name === 'string')) {
    throw new StatementError(kind, 'bad_schema', '/crit is not a list of names');
  }
  for (const name of names) {
    if (name === 'crit' || !Object.hasOwn(value, name))
      throw new StatementError(kind, 'bad_schema', '/crit names a member that is not there');
    if (!known.has(name)) throw new StatementError(kind, 'unknown_critical', 'a member that must be understood is not known');
  }
}

function decode(kind: StatementKind, member: string, text: string): Uint8Array {
  try {
    return fromBase64(text);
  } catch {
    throw new StatementError(kind, 'bad_encoding', `${member} is not canonical base64`);
  }
}

function parseCanonical(kind: StatementKind, payload: Uint8Array): unknown {
  try {
    const text = fromUtf8(payload);
    const value = JSON.parse(text) as JsonValue;
    if (canonicalJson(value) === text) return value;
  } catch {
    // Invalid JSON fails like non-canonical JSON.
  }
  throw new StatementError(kind, 'not_canonical', 'the payload is not canonical JSON');
}
