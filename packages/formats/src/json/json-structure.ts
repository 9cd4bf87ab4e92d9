/**
 * `structureProblem` checks limits that `JSON.parse` does not have: nesting, number of values, duplicate members.
 *
 * Runs before the parser, so invalid JSON may pass.
 */

/** Maximum nesting of arrays and objects. */
export const MAX_JSON_DEPTH = 64;
/** Maximum values in total, counted by brackets and commas. A long conversation with many tools has some thousands. */
export const MAX_JSON_VALUES = 100_000;

/** Maximum members of one object. Checking names against schema patterns takes microseconds per member. */
export const MAX_JSON_MEMBERS = 10_000;

type StructureProblem = 'too_deep' | 'too_many_values' | 'too_many_members' | 'duplicate_member';

/** The first structural problem of a JSON text, or null. Takes linear time. */
export function structureProblem(json: string): StructureProblem | null {
  /** For each open object, the names seen so far; null for an open array. */
  const open: (Set<string> | null)[] = [];
  let values = 1;
  for (let position = 0; position < json.length; position++) {
    switch (json[position]) {
      case '"': {
        const end = endOfString(json, position);
        const names = open[open.length - 1];
        if (names && isName(json, end)) {
          const name = nameIn(json.slice(position, end));
          if (names.has(name)) return 'duplicate_member';
          names.add(name);
          if (names.size > MAX_JSON_MEMBERS) return 'too_many_members';
        }
        position = end - 1;
        break;
      }
      case '{':
      case '[':
        if (open.length === MAX_JSON_DEPTH) return 'too_deep';
        open.push(json[position] === '{' ? new Set() : null);
        values++;
        break;
      case '}':
      case ']':
        open.pop();
        break;
      case ',':
        values++;
        break;
      default:
    }
    if (values > MAX_JSON_VALUES) return 'too_many_values';
  }
  return null;
}

/** Offset after the closing quote of the string literal at `start`; the length of the text if there is no closing quote. */
function endOfString(json: string, start: number): number {
  let quote = start;
  do quote = json.indexOf('"', quote + 1);
  while (quote !== -1 && isEscaped(json, quote));
  return quote === -1 ? json.length : quote + 1;
}

function isEscaped(json: string, quote: number): boolean {
  let backslashes = 0;
  while (json[quote - 1 - backslashes] === '\\') backslashes++;
  return backslashes % 2 === 1;
}

/** Whether a colon follows the string that ends at `end`, so that the string is a member name. */
function isName(json: string, end: number): boolean {
  let position = end;
  while (json[position] === ' ' || json[position] === '\n' || json[position] === '\t' || json[position] === '\r') position++;
  return json[position] === ':';
}

function nameIn(literal: string): string {
  if (!literal.includes('\\')) return literal.slice(1, -1);
  try {
    return JSON.parse(literal) as string;
  } catch {
    // Invalid JSON, which the parser reports later.
    return literal;
  }
}
