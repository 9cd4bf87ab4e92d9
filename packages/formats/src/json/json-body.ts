/**
 * Parses a request body as JSON: strict UTF-8, no duplicate members, bounded nesting and number of values.
 *
 * NUL characters and lone surrogates in string values are rejected too, because engines reject them, except in bodies that are arrays.
 */
import { fromUtf8 } from '@inference/protocol';
import { RequestError } from '../errors/errors.js';
import { MAX_JSON_DEPTH, MAX_JSON_MEMBERS, MAX_JSON_VALUES, structureProblem } from './json-structure.js';

/** Throws RequestError: `invalid_request` for a NUL character or lone surrogate, `invalid_json` for all other faults. */
export function readJsonBody(body: Uint8Array): unknown {
  const json = decode(body);
  rejectBadStructure(json);
  const value = parse(json);
  rejectBadText(json, value);
  return value;
}

function decode(body: Uint8Array): string {
  if (body.length === 0) throw new RequestError('invalid_json', null, 'The request body is empty. It must be a JSON object.');
  try {
    return fromUtf8(body);
  } catch {
    throw new RequestError('invalid_json', null, 'The request body is not valid UTF-8.');
  }
}

function rejectBadStructure(json: string): void {
  const problem = structureProblem(json);
  switch (problem) {
    case null:
      return;
    case 'too_deep':
      throw new RequestError('invalid_json', null, `The request body is nested more than ${MAX_JSON_DEPTH} levels deep.`);
    case 'too_many_values':
      throw new RequestError('invalid_json', null, `The request body holds more than ${MAX_JSON_VALUES} values.`);
    case 'too_many_members':
      throw new RequestError('invalid_json', null, `The request body has an object with more than ${MAX_JSON_MEMBERS} members.`);
    case 'duplicate_member':
      throw new RequestError('invalid_json', null, 'The request body names a member twice in one object.');
    default:
      problem satisfies never;
  }
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    // The parser's message quotes the body, so it must not reach logs or other readers.
    throw new RequestError('invalid_json', null, 'The request body is not valid JSON.');
  }
}

/** Escapes of NUL and surrogates. Unescaped ones have been rejected: UTF-8 has no lone surrogates, and JSON no raw NUL. */
const SUSPICIOUS_ESCAPE = /\\u(?:0000|[dD][89a-fA-F])/;

function rejectBadText(json: string, value: unknown): void {
  // The schema rejects bodies that are arrays, with a better message.
  if (!json.includes('\\u') || !SUSPICIOUS_ESCAPE.test(json) || Array.isArray(value)) return;
  const steps = stepsToBadText(value);
  if (steps === null) return;
  const param = paramOf(steps);
  const where = param ?? 'A text in the request body';
  throw new RequestError('invalid_request', param, `${where} holds a NUL character or half of a surrogate pair, which is no text.`);
}

/** Path steps to the first invalid string; null if there is none. */
function stepsToBadText(value: unknown): string[] | null {
  if (typeof value === 'string') return value.includes('\0') || /\p{Surrogate}/u.test(value) ? [] : null;
  if (typeof value !== 'object' || value === null) return null;
  for (const [key, member] of Object.entries(value)) {
    const steps = stepsToBadText(member);
    if (steps !== null) return [Array.isArray(value) ? `[${key}]` : `.${key}`, ...steps];
  }
  return null;
}

/** Maximum length of `param` in a job failure (`JobFailureSchema`). */
const MAX_PARAM_LENGTH = 64;

/** Joins the steps up to the first unusual name. Such names may be client content, which errors must not repeat. */
function paramOf(steps: readonly string[]): string | null {
  let path = '';
  for (const step of steps) {
    if (!/^(?:\.\w+|\[\d+\])$/.test(step) || path.length + step.length > MAX_PARAM_LENGTH) break;
    path += step;
  }
  return path === '' ? null : path.replace(/^\./, '');
}
