/**
 * `SchemaCompiler` compiles a JSON Schema to grammar rules. In strict mode, every generated value matches the schema.
 *
 * Strict mode rejects keywords that a grammar cannot enforce; otherwise such keywords are ignored. Members are generated in schema
 * order. Objects with `properties` get additional members only if the schema has `additionalProperties`.
 */
import { GrammarBuilder, GrammarTooLarge, type Sequence, type Term } from '../grammar/grammar.js';
import { JsonGrammar } from '../grammar/json-grammar.js';
import { languageOfNumber, MultipleError } from '../language/number-language.js';
import { type Language, type LanguageFactory, LanguageTooLarge } from '../language/regular-language.js';
import { arrayRule } from './arrays.js';
import { type Exclusions, exclusionsOf } from './exclusions.js';
import { canonicalJson, literalsOf } from './literals.js';
import { objectRule } from './objects.js';
import { numberBounds, type StringBounds, stringBounds, stringLanguage } from './scalars.js';
import { type JsonType, jsonTypeOf, type Schema, SchemaDocument } from './schema-document.js';
import { SchemaError } from './schema-error.js';

/** Keywords that the compiler cannot enforce. */
const UNSUPPORTED_KEYWORDS = [
  '$dynamicRef',
  '$recursiveRef',
  'contains',
  'dependencies',
  'dependentRequired',
  'dependentSchemas',
  'else',
  'if',
  'maxContains',
  'minContains',
  'patternProperties',
  'then',
  'unevaluatedItems',
];
/** Maximum nesting of schemas, including references. */
const MAX_DEPTH = 200;
/** Maximum checks of `const` and `enum` values against schemas or exclusions. */
const MAX_CHECKED_VALUES = 20_000;
/** Maximum `oneOf` branches that are compared pairwise. */
const MAX_BRANCHES = 32;
/** Maximum rules created while comparing `oneOf` branches. */
const MAX_COMPARED_RULES = 100_000;

export class SchemaCompiler {
  readonly document: SchemaDocument;
  readonly builder: GrammarBuilder;
  readonly languages: LanguageFactory;
  /** Rules of values, by key of their schemas. */
  readonly #rules = new Map<string, Term>();
  /** Choices (`anyOf`, `oneOf`) being compiled at the current position. Prevents left recursion: a choice within itself adds nothing. */
  #openChoices = new Set<string>();
  /** Nesting of the value being compiled. */
  #depth = 0;
  /** Number of checked `const` and `enum` values. */
  #checkCount = 0;
  /** Number of rules created while comparing `oneOf` branches. */
  #comparedRules = 0;

  /** `json`: JSON rules of the target grammar. `isStrict`: reject keywords that a grammar cannot enforce, instead of ignoring them. */
  constructor(
    readonly json: JsonGrammar,
    root: unknown,
    readonly isStrict: boolean,
  ) {
    this.document = new SchemaDocument(root);
    this.builder = json.builder;
    this.languages = json.languages;
  }

  /** Reports a keyword that a grammar cannot enforce. Throws {@link SchemaError} in strict mode. */
  reportUnsupported(schema: Schema, keyword: string, limit: number | null = null): void {
    if (this.isStrict) throw new SchemaError('unsupported', this.document.path(schema, keyword), limit);
  }

  /** Adds to the number of checked values. Throws {@link SchemaError} above the limit. */
  countChecks(values: number): void {
    this.#checkCount += values;
    if (this.#checkCount > MAX_CHECKED_VALUES) throw new SchemaError('unsupported', []);
  }

  /** Rule of values that match all schemas. Throws {@link SchemaError}. */
  value(schemas: readonly (Schema | boolean)[]): Term {
    const plain = this.document.flatten(schemas);
    if (plain === null) return this.builder.rule();
    const key = this.document.key(plain);
    if (this.#openChoices.has(key)) return this.builder.rule();
    const known = this.#rules.get(key);
    if (known !== undefined) return known;
    const rule = this.builder.reserve();
    this.#rules.set(key, rule);
    return this.builder.define(rule, this.#alternatives(plain, key));
  }

  /** Like {@link value}, for an item or member of the current value. */
  nestedValue(schemas: readonly (Schema | boolean)[]): Term {
    if (this.#depth >= MAX_DEPTH) throw new SchemaError('unsupported', []);
    const outerChoices = this.#openChoices;
    this.#openChoices = new Set();
    this.#depth++;
    try {
      return this.value(schemas);
    } finally {
      this.#depth--;
      this.#openChoices = outerChoices;
    }
  }

  /** Alternatives for values that match all schemas. `key`: key of the schemas. */
  #alternatives(plain: readonly Schema[], key: string): readonly Sequence[] {
    for (const schema of plain)
      for (const keyword of UNSUPPORTED_KEYWORDS) if (schema[keyword] !== undefined) this.reportUnsupported(schema, keyword);
    const choice = plain.find(({ anyOf, oneOf }) => anyOf !== undefined || oneOf !== undefined);
    if (choice !== undefined) return this.#choices(plain, choice, key);
    const excluded = exclusionsOf(this, plain);
    const literals = literalsOf(this, plain);
    if (literals !== null) {
      this.countChecks(literals.length * (excluded.strings.length + excluded.numbers.length));
      return this.json.anyOf(literals.filter((value) => !isExcluded(this.languages, excluded, value)));
    }
    return [...this.document.types(plain)].flatMap((kind) => this.#alternativesOfType(kind, plain, excluded));
  }

  /** Alternatives for the branches of `anyOf` or `oneOf` in `choice`, one of the schemas. */
  #choices(plain: readonly Schema[], choice: Schema, key: string): readonly Sequence[] {
    const keyword = choice.anyOf !== undefined ? 'anyOf' : 'oneOf';
    const branches = this.document.list(choice, keyword);
    const remaining = plain.map((schema) => (schema === choice ? this.document.without(choice, keyword) : schema));
    if (keyword === 'oneOf' && !this.#areDisjoint(branches)) this.reportUnsupported(choice, keyword);
    this.#openChoices.add(key);
    const alternatives = branches.map((branch) => [this.value([...remaining, branch])]);
    this.#openChoices.delete(key);
    return alternatives;
  }

  /** Whether no value that is generated for one branch matches another branch. */
  #areDisjoint(branches: readonly (Schema | boolean)[]): boolean {
    if (branches.length * (branches.length - 1) > MAX_BRANCHES ** 2) return false;
    const tags = branches.map((branch) => discriminatorsOf(this.document, branch));
    const haveDisjointTags = (i: number, j: number): boolean => areDisjoint(tags[i] as Discriminators, tags[j] as Discriminators);
    return branches.every((one, i) =>
      branches.every((other, j) => i === j || haveDisjointTags(i, j) || !this.#mayOverlap(this.#withoutAdditional(one), other)),
    );
  }

  /** Whether some value may match all schemas. */
  #mayOverlap(...schemas: readonly (Schema | boolean)[]): boolean {
    if (this.#comparedRules > MAX_COMPARED_RULES) return true;
    const builder = new GrammarBuilder();
    const scratch = new SchemaCompiler(new JsonGrammar(builder, this.languages), this.document.root, true);
    try {
      return builder.grammar(scratch.value(schemas)) !== null;
    } catch (error) {
      // If the comparison is not possible, assume an overlap.
      if (toSchemaError(error) instanceof SchemaError) return true;
      throw error;
    } finally {
      this.#comparedRules += builder.size;
    }
  }

  /** Adds `additionalProperties: false`, because without the keyword no additional members are generated. */
  #withoutAdditional(schema: Schema | boolean): Schema | boolean {
    if (typeof schema === 'boolean' || schema.properties === undefined || schema.additionalProperties !== undefined) return schema;
    return { ...schema, additionalProperties: false };
  }

  /** Alternatives for the values of one type. */
  #alternativesOfType(kind: JsonType, plain: readonly Schema[], excluded: Exclusions): readonly Sequence[] {
    if (isTypeExcluded(excluded, kind)) return [];
    switch (kind) {
      case 'null':
        return [this.json.literal(null)];
      case 'boolean':
        return this.json.anyOf([true, false].filter((value) => !excluded.booleans.has(value)));
      case 'integer':
        return [[this.#number(plain, true, excluded)]];
      case 'number':
        if (excluded.types.has('integer')) this.reportUnsupported(plain.find(({ not }) => not !== undefined) ?? {}, 'not');
        return [[this.#number(plain, false, excluded)]];
      case 'string':
        return [[this.#string(plain, excluded)]];
      case 'array':
        return [[arrayRule(this, plain)]];
      case 'object':
        return [[objectRule(this, plain)]];
      default:
        return kind satisfies never;
    }
  }

  #number(plain: readonly Schema[], isInteger: boolean, { numbers }: Exclusions): Term {
    const bounds = { ...numberBounds(this.document, plain, isInteger), except: numbers };
    try {
      return this.json.unquoted(languageOfNumber(this.languages, bounds));
    } catch (error) {
      if (!(error instanceof MultipleError)) throw error;
      this.reportUnsupported(plain.find(({ multipleOf }) => multipleOf !== undefined) ?? {}, 'multipleOf');
      return this.json.unquoted(languageOfNumber(this.languages, { ...bounds, multiplesOf: [] }));
    }
  }

  #string(plain: readonly Schema[], { strings }: Exclusions): Term {
    const { languages } = this;
    const { language, min, max } = this.stringBounds(plain);
    if (language === null && strings.length === 0) {
      return min === 0 && max === Infinity ? this.json.string : this.json.stringOfLength(min, max);
    }
    const others = strings.map((each) => languages.complement(each));
    return this.json.quoted(
      languages.intersection(...(language === null ? [] : [language]), ...others, languages.repeat(languages.any, min, max)),
    );
  }

  stringBounds(plain: readonly Schema[]): StringBounds {
    return stringBounds(this, plain);
  }

  stringLanguage(plain: readonly Schema[]): Language {
    return stringLanguage(this, plain);
  }
}

/** Every integer is also a number. */
function isTypeExcluded({ types }: Exclusions, kind: JsonType): boolean {
  return types.has(kind) || (kind === 'integer' && types.has('number'));
}

function isExcluded(languages: LanguageFactory, excluded: Exclusions, value: unknown): boolean {
  if (isTypeExcluded(excluded, jsonTypeOf(value))) return true;
  if (typeof value === 'boolean') return excluded.booleans.has(value);
  if (typeof value === 'number') return excluded.numbers.includes(value);
  return typeof value === 'string' && excluded.strings.some((language) => languages.contains(language, value));
}

/** Converts errors about size to SchemaError, and returns other errors unchanged. */
export function toSchemaError(error: unknown): unknown {
  // RangeError: the nesting exceeded the call stack.
  const isTooLarge = error instanceof LanguageTooLarge || error instanceof GrammarTooLarge || error instanceof RangeError;
  return isTooLarge ? new SchemaError('unsupported', []) : error;
}

/** Members by whose values a branch of `oneOf` can be recognized. */
interface Discriminators {
  /** Whether every value of the branch is an object. */
  readonly isObject: boolean;
  /** Names of required members. */
  readonly required: ReadonlySet<unknown>;
  /** Canonical JSON of a member's possible values, by member name. */
  readonly values: ReadonlyMap<string, ReadonlySet<string>>;
}

/** Throws SchemaError on an invalid schema. */
function discriminatorsOf(document: SchemaDocument, branch: Schema | boolean): Discriminators {
  const plain = document.flatten([branch]) ?? [];
  const values = new Map<string, ReadonlySet<string>>();
  for (const { properties } of plain) {
    if (typeof properties !== 'object' || properties === null) continue;
    for (const [name, member] of Object.entries(properties)) {
      const allowed = allowedJson(member);
      if (allowed !== null) values.set(name, allowed);
    }
  }
  const isObject = plain.some(({ type }) => type === 'object');
  return { isObject, required: new Set(plain.flatMap(({ required }) => (Array.isArray(required) ? required : []))), values };
}

/**
 * Whether the discriminators prove that no value matches both branches: a required member has disjoint values in both. The check is faster
 * than comparing grammars.
 */
function areDisjoint(one: Discriminators, other: Discriminators): boolean {
  if (!one.isObject) return false;
  for (const [name, values] of one.values) {
    const others = other.values.get(name);
    if (others === undefined || !(one.required.has(name) || other.required.has(name))) continue;
    if (![...values].some((value) => others.has(value))) return true;
  }
  return false;
}

/** Canonical JSON of the values in the member's `const` or `enum`; null without either. */
function allowedJson(member: unknown): ReadonlySet<string> | null {
  if (typeof member !== 'object' || member === null) return null;
  const { const: only, enum: several } = member as Schema;
  if (only !== undefined) return new Set([canonicalJson(only)]);
  return Array.isArray(several) ? new Set(several.map(canonicalJson)) : null;
}
