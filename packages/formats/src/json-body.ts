/**
 * Reading of a request body: strict UTF-8, one JSON object, no member twice, no text that cannot be handed to an engine
 * (NUL, half of a surrogate pair). Two programs that read the same bytes here see the same request.
 */
import { fromUtf8 } from '@inference/protocol';
import { RequestError } from './errors.js';
import { MAX_JSON_DEPTH, structureProblem } from './json-structure.js';

/** The parsed body. Throws RequestError `invalid_json`, or `invalid_request` when a text is at fault. */
export function readJsonBody(body: Uint8Array): unknown {
  const json = decode(body);
  const value = parse(json);
  switch (structureProblem(json)) {
    case 'too_deep':
      throw new RequestError('invalid_json', null, `The request body is nested more than ${MAX_JSON_DEPTH} levels deep.`);
    case 'duplicate_member':
      throw new RequestError('invalid_json', null, 'The request body names a member twice in one object.');
    case null:
      refuseBadText(json, value);
      return value;
  }
}

function decode(body: Uint8Array): string {
  if (body.length === 0) throw new RequestError('invalid_json', null, 'The request body is empty. It must be a JSON object.');
  try {
    return fromUtf8(body);
  } catch {
    throw new RequestError('invalid_json', null, 'The request body is not valid UTF-8.');
  }
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    // The parser's own message quotes the body, so it is not passed on.
    throw new RequestError('invalid_json', null, 'The request body is not valid JSON.');
  }
}

/** In strict UTF-8 both can only come from escapes. */
const SUSPICIOUS_ESCAPE = /\\u(?:0000|[dD][89a-fA-F])/;

function refuseBadText(json: string, value: unknown): void {
  if (!SUSPICIOUS_ESCAPE.test(json)) return;
  const param = pathOfBadText(value, '');
  if (param === null) return;
  const where = param === '' ? 'A text in the request body' : param;
  throw new RequestError(
    'invalid_request',
    param === '' ? null : param,
    `${where} holds a NUL character or half of a surrogate pair, which is no text.`,
  );
}

/** Path of the first bad string, as far as it is made of plain names; null when there is none. */
function pathOfBadText(value: unknown, path: string): string | null {
  if (typeof value === 'string') return value.includes('\0') || /\p{Surrogate}/u.test(value) ? path : null;
  if (typeof value !== 'object' || value === null) return null;
  for (const [key, member] of Object.entries(value)) {
    const found = pathOfBadText(member, extend(path, key, Array.isArray(value)));
    if (found !== null) return found;
  }
  return null;
}

/** Longest `param` that travels (protocol: JobFailure). */
const MAX_PARAM_LENGTH = 64;

function extend(path: string, key: string, inArray: boolean): string {
  const longer = inArray ? `${path}[${key}]` : path === '' ? key : `${path}.${key}`;
  return longer.length <= MAX_PARAM_LENGTH && /^[A-Za-z0-9_]+$/.test(key) ? longer : path;
}
