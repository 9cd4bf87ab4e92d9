/**
 * Values that `not` excludes: types, values of `const` and `enum` except arrays and objects, and strings by string keywords.
 *
 * Supports references, `anyOf` and `allOf` of these. Reports every other `not` as unsupported.
 */
import type { Language, LanguageFactory } from '../language/regular-language.js';
import { valuesOf } from './literals.js';
import { stringLanguage } from './scalars.js';
import { type JsonType, jsonTypeOf, type Schema, type SchemaDocument } from './schema-document.js';

export interface Exclusions {
  readonly types: ReadonlySet<JsonType>;
  readonly booleans: ReadonlySet<boolean>;
  readonly numbers: readonly number[];
  /** Excluded strings: all strings of these languages. */
  readonly strings: readonly Language[];
}

const ALL_TYPES: readonly JsonType[] = ['null', 'boolean', 'integer', 'number', 'string', 'array', 'object'];
/** Keywords that constrain no value. */
const ANNOTATIONS = ['title', 'description', '$comment', 'default', 'examples', 'deprecated', '$schema', '$defs', 'definitions'];
/** Keywords that constrain only strings. */
const STRING_KEYWORDS = ['pattern', 'minLength', 'maxLength', 'format'];

interface CompilerContext {
  readonly document: SchemaDocument;
  readonly languages: LanguageFactory;
  reportUnsupported(schema: Schema, keyword: string, limit?: number | null): void;
}

/** Reads the exclusions of a conjunction. In strict mode, throws SchemaError on an unsupported `not`. */
export function exclusionsOf(context: CompilerContext, plain: readonly Schema[]): Exclusions {
  const reader = new ExclusionReader(context);
  for (const schema of plain) {
    if (schema.not !== undefined) reader.exclude(schema, context.document.inner(schema, schema.not, 'not'));
  }
  return reader;
}

class ExclusionReader implements Exclusions {
  readonly types = new Set<JsonType>();
  readonly booleans = new Set<boolean>();
  readonly numbers: number[] = [];
  readonly strings: Language[] = [];
  readonly #context: CompilerContext;
  /** Keys of the schemas read so far. Prevents endless and repeated reads of references. */
  readonly #readKeys = new Set<string>();

  constructor(context: CompilerContext) {
    this.#context = context;
  }

  /** Excludes all values that match `schema`. `parent`: the schema with `not`. */
  exclude(parent: Schema, schema: Schema | boolean): void {
    const { document } = this.#context;
    const plain = document.flatten([schema]);
    if (plain === null) return;
    const key = document.key(plain);
    if (this.#readKeys.has(key)) return;
    this.#readKeys.add(key);
    const merged = mergeKeywords(document, parent, plain);
    if (merged === null) this.#reportUnsupported(parent);
    else this.#excludeMerged(parent, merged);
  }

  /** Excludes all values that match a single schema without `$ref` and `allOf`. */
  #excludeMerged(parent: Schema, schema: Schema): void {
    const { document } = this.#context;
    const keywords = Object.keys(schema).filter((name) => !ANNOTATIONS.includes(name));
    const areOnly = (...names: readonly string[]): boolean => keywords.every((name) => names.includes(name));
    // `not anyOf` excludes each branch.
    if (keywords.length === 1 && schema.anyOf !== undefined) {
      for (const branch of document.list(schema, 'anyOf')) this.exclude(parent, branch);
    } else if (keywords.length === 0) for (const kind of ALL_TYPES) this.types.add(kind);
    else if (areOnly('type')) for (const kind of document.types([schema])) this.types.add(kind);
    else if (areOnly('type', ...STRING_KEYWORDS) && requiresString(document, schema))
      this.strings.push(...excludedStrings(this.#context, schema));
    else if (areOnly('type', 'enum', 'const')) this.#excludeValues(parent, schema);
    else this.#reportUnsupported(parent);
  }

  /** Excludes the values of `const` and `enum` that have the type of the schema. */
  #excludeValues(parent: Schema, schema: Schema): void {
    const { document, languages } = this.#context;
    const types = schema.type === undefined ? new Set(ALL_TYPES) : document.types([schema]);
    for (const value of valuesOf(document, schema).values()) {
      const kind = jsonTypeOf(value);
      if (!types.has(kind) && !(kind === 'integer' && types.has('number'))) continue;
      if (typeof value === 'string') this.strings.push(languages.text(value));
      else if (typeof value === 'number') this.numbers.push(value);
      else if (typeof value === 'boolean') this.booleans.add(value);
      else if (value === null) this.types.add(kind);
      else this.#reportUnsupported(parent);
    }
  }

  #reportUnsupported(parent: Schema): void {
    this.#context.reportUnsupported(parent, 'not');
  }
}

/** One schema with the keywords of all; null if two schemas constrain the same keyword differently. */
function mergeKeywords(document: SchemaDocument, parent: Schema, plain: readonly Schema[]): Schema | null {
  const [only, ...others] = plain;
  if (only !== undefined && others.length === 0) return only;
  const merged = new Map<string, unknown>();
  for (const [name, value] of plain.flatMap((schema) => Object.entries(schema))) {
    if (ANNOTATIONS.includes(name)) continue;
    if (merged.has(name) && merged.get(name) !== value) return null;
    merged.set(name, value);
  }
  return document.inner(parent, Object.fromEntries(merged), 'not') as Schema;
}

/**
 * Strings of a schema under `not`. Empty if a keyword is ignored, because the remaining keywords would exclude too many strings.
 */
function excludedStrings(context: CompilerContext, schema: Schema): readonly Language[] {
  const ignored: string[] = [];
  const reportUnsupported = (owner: Schema, keyword: string, limit?: number | null): void => {
    context.reportUnsupported(owner, keyword, limit);
    ignored.push(keyword);
  };
  const language = stringLanguage({ document: context.document, languages: context.languages, reportUnsupported }, [schema]);
  return ignored.length === 0 ? [language] : [];
}

/** Whether the schema requires a string. Without `type`, string keywords also match all other values. */
function requiresString(document: SchemaDocument, schema: Schema): boolean {
  const types = document.types([schema]);
  return schema.type !== undefined && types.size === 1 && types.has('string');
}
