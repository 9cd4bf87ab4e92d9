/**
 * JSON Canonicalization Scheme (RFC 8785). Both sides of a signature build the same bytes from the same value.
 */
import { utf8 } from './bytes.js';

export type JsonValue = null | boolean | number | string | readonly JsonValue[] | { readonly [key: string]: JsonValue | undefined };

/**
 * Canonical text of a JSON value: members sorted by UTF-16 code units, no white space, numbers and strings as
 * ECMAScript prints them (RFC 8785 section 3.2). Members that are `undefined` are left out.
 * Throws TypeError on NaN, infinities, lone surrogates and anything that is not JSON.
 */
export function canonicalJson(value: JsonValue): string {
  switch (typeof value) {
    case 'boolean':
      return value ? 'true' : 'false';
    case 'number':
      if (!Number.isFinite(value)) throw new TypeError('canonical JSON has no NaN and no infinity');
      return JSON.stringify(value);
    case 'string':
      return canonicalString(value);
    case 'object':
      if (value === null) return 'null';
      if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
      return canonicalObject(value as { readonly [key: string]: JsonValue | undefined });
    default:
      throw new TypeError(`canonical JSON cannot hold a ${typeof value}`);
  }
}

/** UTF-8 bytes of {@link canonicalJson}. */
export function canonicalJsonBytes(value: JsonValue): Uint8Array {
  return utf8(canonicalJson(value));
}

function canonicalObject(value: { readonly [key: string]: JsonValue | undefined }): string {
  const members: string[] = [];
  for (const key of Object.keys(value).sort()) {
    const member = value[key];
    if (member !== undefined) members.push(`${canonicalString(key)}:${canonicalJson(member)}`);
  }
  return `{${members.join(',')}}`;
}

function canonicalString(text: string): string {
  if (LONE_SURROGATE.test(text)) throw new TypeError('canonical JSON has no lone surrogates');
  return JSON.stringify(text);
}

const LONE_SURROGATE = /\p{Surrogate}/u;
