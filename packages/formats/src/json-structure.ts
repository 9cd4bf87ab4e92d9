/**
 * Checks what `JSON.parse` lets through: nesting so deep that recursive code would fail on it, and members named twice,
 * of which two readers may pick different ones. The text has been parsed before, so it is known to be JSON.
 */

/** Arrays and objects within one another. */
export const MAX_JSON_DEPTH = 64;

export type StructureProblem = 'too_deep' | 'duplicate_member';

/** What is wrong with the structure of a JSON text, or null. Runs in time linear to its length. */
export function structureProblem(json: string): StructureProblem | null {
  /** Names seen in each open object; null for an open array. */
  const open: (Set<string> | null)[] = [];
  let position = 0;
  while (position < json.length) {
    const character = json[position];
    if (character === '"') {
      const end = endOfString(json, position);
      const names = open[open.length - 1];
      if (names && isName(json, end)) {
        const name = JSON.parse(json.slice(position, end)) as string;
        if (names.has(name)) return 'duplicate_member';
        names.add(name);
      }
      position = end;
      continue;
    }
    if (character === '{' || character === '[') {
      if (open.length === MAX_JSON_DEPTH) return 'too_deep';
      open.push(character === '{' ? new Set() : null);
    } else if (character === '}' || character === ']') open.pop();
    position++;
  }
  return null;
}

/** Offset just after the closing quote of the string literal that begins at `start`. */
function endOfString(json: string, start: number): number {
  let quote = start;
  do quote = json.indexOf('"', quote + 1);
  while (isEscaped(json, quote));
  return quote + 1;
}

function isEscaped(json: string, quote: number): boolean {
  let backslashes = 0;
  while (json[quote - 1 - backslashes] === '\\') backslashes++;
  return backslashes % 2 === 1;
}

/** A string that a colon follows is a member's name. */
function isName(json: string, end: number): boolean {
  let position = end;
  while (json[position] === ' ' || json[position] === '\n' || json[position] === '\t' || json[position] === '\r') position++;
  return json[position] === ':';
}
