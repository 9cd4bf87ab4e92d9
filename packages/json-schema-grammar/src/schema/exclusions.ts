/** Values excluded by `not`, as far as expressible by types, single values or strings. */

import type { Language, Languages } from '../language/regular-language.js';
import { type Kind, kindOf, type Schema, type SchemaDocument } from './schema-document.js';

export interface Exclusions {
  readonly kinds: ReadonlySet<Kind>;
  readonly numbers: readonly number[];
  /** Each language is excluded independently. */
  readonly strings: readonly Language[];
}

const NOTES = ['title', 'description', '$comment', 'default', 'examples', 'deprecated'];
const OF_STRINGS = ['pattern', 'minLength', 'maxLength', 'format'];

interface Surroundings {
  readonly document: SchemaDocument;
  readonly languages: Languages;
  refuse(schema: Schema, keyword: string): void;
  stringLanguage(plain: readonly Schema[]): Language;
}

/** Throws SchemaError for an inexpressible exclusion. */
export function exclusionsOf(around: Surroundings, plain: readonly Schema[]): Exclusions {
  const kinds = new Set<Kind>();
  const numbers: number[] = [];
  const strings: Language[] = [];
  for (const schema of plain) {
    if (schema.not === undefined) continue;
    for (const branch of branchesOf(around, schema)) {
      const ruled = typeof branch === 'boolean' ? (branch ? { type: ALL } : null) : branch;
      if (ruled === null) continue;
      const keywords = Object.keys(ruled).filter((name) => !NOTES.includes(name));
      const literals = ruled.enum ?? (ruled.const === undefined ? undefined : [ruled.const]);
      if (keywords.length === 0) for (const kind of ALL) kinds.add(kind);
      else if (keywords.every((name) => name === 'type')) for (const kind of around.document.kinds([ruled])) kinds.add(kind);
      else if (keywords.every((name) => name === 'type' || OF_STRINGS.includes(name)) && isOfStrings(around, ruled)) {
        strings.push(around.stringLanguage([ruled]));
      } else if (Array.isArray(literals) && keywords.every((name) => name === 'enum' || name === 'const' || name === 'type')) {
        for (const value of literals as readonly unknown[]) {
          const kind = kindOf(value);
          if (typeof value === 'string') strings.push(around.languages.text(value));
          else if (typeof value === 'number') numbers.push(value);
          else if (kind === 'null') kinds.add(kind);
          else around.refuse(schema, 'not');
        }
      } else around.refuse(schema, 'not');
    }
  }
  return { kinds, numbers, strings };
}

const ALL: readonly Kind[] = ['null', 'boolean', 'integer', 'number', 'string', 'array', 'object'];

/** `not anyOf` excludes each branch. */
function branchesOf({ document }: Surroundings, schema: Schema): readonly (Schema | boolean)[] {
  const plain = document.flatten([document.inner(schema, schema.not, 'not')]);
  if (plain === null) return [false];
  const [only, ...others] = plain;
  if (only === undefined) return [true];
  if (others.length > 0) return plain.map((each) => each);
  return only.anyOf !== undefined && Object.keys(only).length === 1 ? document.list(only, 'anyOf') : [only];
}

/** Without a type, string keywords exclude no other value, but all other values match them. */
function isOfStrings({ document }: Surroundings, schema: Schema): boolean {
  const kinds = document.kinds([schema]);
  return schema.type !== undefined && kinds.size === 1 && kinds.has('string');
}
