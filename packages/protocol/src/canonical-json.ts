/** JSON Canonicalization Scheme (RFC 8785), so that signer and verifier serialize a value to the same bytes. */
import { utf8 } from './bytes.js';

export type JsonValue = null | boolean | number | string | readonly JsonValue[] | { readonly [key: string]: JsonValue | undefined };

/**
 * Canonical text of a JSON value (RFC 8785 section 3.2). Members that are `undefined` are omitted.
 *
 * @throws {TypeError} For NaN, infinities, lone surrogates and values outside JSON.
 */
export function canonicalJson(value: JsonValue): string {
  if (typeof value === 'object' && isInOrder(value)) {
    const text = JSON.stringify(value);
    // JSON.stringify escapes lone surrogates, which `sortedJson` rejects.
    if (!text.includes('\\ud')) return text;
  }
  return sortedJson(value);
}

/** Whether JSON.stringify already yields the canonical text: sorted members, plain JSON only. */
function isInOrder(value: JsonValue | undefined): boolean {
  switch (typeof value) {
    case 'boolean':
    case 'string':
      return true;
    case 'number':
      return Number.isFinite(value);
    case 'object': {
      if (value === null) return true;
      if (Array.isArray(value)) {
        for (let index = 0; index < value.length; index++) if (!isInOrder(value[index])) return false;
        return true;
      }
      // Objects with another prototype may define their own toJSON.
      if (Object.getPrototypeOf(value) !== Object.prototype) return false;
      let last = '';
      for (const key of Object.keys(value)) {
        if (key < last || !isInOrder((value as { readonly [key: string]: JsonValue | undefined })[key])) return false;
        last = key;
      }
      return true;
    }
    default:
      return false;
  }
}

function sortedJson(value: JsonValue): string {
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
      if (Array.isArray(value)) return `[${value.map(sortedJson).join(',')}]`;
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
    if (member !== undefined) members.push(`${canonicalString(key)}:${sortedJson(member)}`);
  }
  return `{${members.join(',')}}`;
}

function canonicalString(text: string): string {
  if (LONE_SURROGATE.test(text)) throw new TypeError('canonical JSON has no lone surrogates');
  return JSON.stringify(text);
}

const LONE_SURROGATE = /\p{Surrogate}/u;
