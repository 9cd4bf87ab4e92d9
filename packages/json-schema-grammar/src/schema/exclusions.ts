/** Values that `not` excludes. Supports types, single values, and string keywords. */

import type { Language, LanguageFactory } from '../language/regular-language.js';
import { stringLanguage } from './scalars.js';
import { type JsonType, jsonTypeOf, type Schema, type SchemaDocument } from './schema-document.js';

export interface Exclusions {
  readonly types: ReadonlySet<JsonType>;
  readonly numbers: readonly number[];
  /** Each language is excluded independently. */
  readonly strings: readonly Language[];
}

const NOTES = ['title', 'description', '$comment', 'default', 'examples', 'deprecated'];
const OF_STRINGS = ['pattern', 'minLength', 'maxLength', 'format'];

interface CompilerContext {
  readonly document: SchemaDocument;
  readonly languages: LanguageFactory;
  refuse(schema: Schema, keyword: string, limit?: number | null): void;
}

/** Reads the exclusions of a conjunction. In strict mode, throws SchemaError on an unsupported `not`. */
export function exclusionsOf(context: CompilerContext, plain: readonly Schema[]): Exclusions {
  const types = new Set<JsonType>();
  const numbers: number[] = [];
  const strings: Language[] = [];
  for (const schema of plain) {
    if (schema.not === undefined) continue;
    for (const branch of branchesOf(context, schema)) {
      const ruled = typeof branch === 'boolean' ? (branch ? { type: ALL } : null) : branch;
      if (ruled === null) continue;
      const keywords = Object.keys(ruled).filter((name) => !NOTES.includes(name));
      const literals = ruled.enum ?? (ruled.const === undefined ? undefined : [ruled.const]);
      if (keywords.length === 0) for (const kind of ALL) types.add(kind);
      else if (keywords.every((name) => name === 'type')) for (const kind of context.document.types([ruled])) types.add(kind);
      else if (keywords.every((name) => name === 'type' || OF_STRINGS.includes(name)) && isOfStrings(context, ruled)) {
        strings.push(...excludedStrings(context, ruled));
      } else if (Array.isArray(literals) && keywords.every((name) => name === 'enum' || name === 'const' || name === 'type')) {
        for (const value of literals as readonly unknown[]) {
          const kind = jsonTypeOf(value);
          if (typeof value === 'string') strings.push(context.languages.text(value));
          else if (typeof value === 'number') numbers.push(value);
          else if (kind === 'null') types.add(kind);
          else context.refuse(schema, 'not');
        }
      } else context.refuse(schema, 'not');
    }
  }
  return { types, numbers, strings };
}

const ALL: readonly JsonType[] = ['null', 'boolean', 'integer', 'number', 'string', 'array', 'object'];

/**
 * Strings of a schema under `not`. Empty if a keyword is ignored, because the remaining keywords would exclude too many strings.
 */
function excludedStrings(context: CompilerContext, ruled: Schema): readonly Language[] {
  const ignored: string[] = [];
  const refuse = (schema: Schema, keyword: string, limit?: number | null): void => {
    context.refuse(schema, keyword, limit);
    ignored.push(keyword);
  };
  const language = stringLanguage({ document: context.document, languages: context.languages, refuse }, [ruled]);
  return ignored.length === 0 ? [language] : [];
}

/** `not anyOf` excludes each branch. */
function branchesOf({ document }: CompilerContext, schema: Schema): readonly (Schema | boolean)[] {
  const plain = document.flatten([document.inner(schema, schema.not, 'not')]);
  if (plain === null) return [false];
  const [only, ...others] = plain;
  if (only === undefined) return [true];
  if (others.length > 0) return plain.map((each) => each);
  return only.anyOf !== undefined && Object.keys(only).length === 1 ? document.list(only, 'anyOf') : [only];
}

/** Whether the schema requires a string. Without `type`, string keywords also match all other values. */
function isOfStrings({ document }: CompilerContext, schema: Schema): boolean {
  const types = document.types([schema]);
  return schema.type !== undefined && types.size === 1 && types.has('string');
}
