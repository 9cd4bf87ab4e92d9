/**
 * From a client's JSON Schema to a grammar all of whose texts fit it, whatever a model would rather write. What a grammar
 * cannot promise is refused by its place in the schema, or left out where the client asked for no promise.
 *
 * Members are written in the order of the schema; optional ones may be left out; others are written only where
 * `additionalProperties` says so.
 */
import { GrammarBuilder, GrammarTooLarge, type Sequence, type Term } from '../grammar/grammar.js';
import { JsonGrammar } from '../grammar/json-grammar.js';
import { languageOfNumber, MultipleError } from '../language/number-language.js';
import { type Language, type Languages, LanguageTooLarge } from '../language/regular-language.js';
import { arrayRule } from './arrays.js';
import { differ, type Tags, tagsOf } from './discriminators.js';
import { type Exclusions, exclusionsOf } from './exclusions.js';
import { literalsOf } from './literals.js';
import { objectRule } from './objects.js';
import { numberBounds, type StringBounds, stringBounds, stringLanguage } from './scalars.js';
import { type Kind, kindOf, type Schema, SchemaDocument } from './schema-document.js';
import { SchemaError } from './schema-error.js';

/** Say something of what is valid that no rule here looks at. */
const NOT_KNOWN = [
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
/** Schemas within one another, references followed. */
const MAX_DEPTH = 200;
/** Values that are held against schemas, or against values that are ruled out. */
const MAX_HELD = 20_000;
/** Pairs of `oneOf` that are held against each other. */
const MAX_CHOICES = 32;
/** Rules that are made to hold pairs of `oneOf` against each other. */
const MAX_COMPARED = 100_000;

export class SchemaCompiler {
  readonly document: SchemaDocument;
  readonly builder: GrammarBuilder;
  readonly languages: Languages;
  readonly #rules = new Map<string, Term>();
  /** Choices that are being made up and of which nothing is written yet; one within itself adds nothing. */
  #opening = new Set<string>();
  #depth = 0;
  #held = 0;
  #compared = 0;

  /** `json`: of the grammar that the rules go into. `isStrict` false: what cannot be promised is left out of the grammar. */
  constructor(
    readonly json: JsonGrammar,
    root: unknown,
    readonly isStrict: boolean,
  ) {
    this.document = new SchemaDocument(root);
    this.builder = json.builder;
    this.languages = json.languages;
  }

  /** A keyword of which nothing can be promised. */
  refuse(schema: Schema, keyword: string, limit: number | null = null): void {
    if (this.isStrict) throw new SchemaError('unsupported', this.document.path(schema, keyword), limit);
  }

  /** Counts values that are looked at one by one, so that they come to an end. Throws {@link SchemaError}. */
  hold(values: number): void {
    this.#held += values;
    if (this.#held > MAX_HELD) throw new SchemaError('unsupported', []);
  }

  /** The rule of values that fit all these schemas. Throws {@link SchemaError}. */
  value(schemas: readonly (Schema | boolean)[]): Term {
    const plain = this.document.flatten(schemas);
    if (plain === null) return this.builder.rule();
    const key = this.document.key(plain);
    if (this.#opening.has(key)) return this.builder.rule();
    const known = this.#rules.get(key);
    if (known !== undefined) return known;
    const rule = this.builder.reserve();
    this.#rules.set(key, rule);
    return this.builder.define(rule, this.#alternatives(plain, key));
  }

  /** The same for values inside of others. */
  inside(schemas: readonly (Schema | boolean)[]): Term {
    if (this.#depth >= MAX_DEPTH) throw new SchemaError('unsupported', []);
    const opening = this.#opening;
    this.#opening = new Set();
    this.#depth++;
    try {
      return this.value(schemas);
    } finally {
      this.#depth--;
      this.#opening = opening;
    }
  }

  #alternatives(plain: readonly Schema[], key: string): readonly Sequence[] {
    for (const schema of plain) for (const keyword of NOT_KNOWN) if (schema[keyword] !== undefined) this.refuse(schema, keyword);
    const choice = plain.find(({ anyOf, oneOf }) => anyOf !== undefined || oneOf !== undefined);
    if (choice !== undefined) return this.#choices(plain, choice, key);
    const excluded = exclusionsOf(this, plain);
    const literals = literalsOf(this, plain);
    if (literals !== null) {
      this.hold(literals.length * (excluded.strings.length + excluded.numbers.length));
      return this.json.anyOf(literals.filter((value) => !isExcluded(this.languages, excluded, value)));
    }
    return [...this.document.kinds(plain)].flatMap((kind) => this.#kind(kind, plain, excluded));
  }

  #choices(plain: readonly Schema[], choice: Schema, key: string): readonly Sequence[] {
    const keyword = choice.anyOf !== undefined ? 'anyOf' : 'oneOf';
    const branches = this.document.list(choice, keyword);
    const others = plain.map((schema) => (schema === choice ? this.document.without(choice, keyword) : schema));
    if (keyword === 'oneOf' && !this.#areApart(branches)) this.refuse(choice, keyword);
    this.#opening.add(key);
    const alternatives = branches.map((branch) => [this.value([...others, branch])]);
    this.#opening.delete(key);
    return alternatives;
  }

  /** No text that is made for one of the branches fits another. */
  #areApart(branches: readonly (Schema | boolean)[]): boolean {
    if (branches.length * (branches.length - 1) > MAX_CHOICES ** 2) return false;
    const tags = branches.map((branch) => tagsOf(this.document, branch));
    const areTagged = (i: number, j: number): boolean => differ(tags[i] as Tags, tags[j] as Tags);
    return branches.every((one, i) => branches.every((other, j) => i === j || areTagged(i, j) || !this.#meet(this.#closed(one), other)));
  }

  #meet(...schemas: readonly (Schema | boolean)[]): boolean {
    if (this.#compared > MAX_COMPARED) return true;
    const builder = new GrammarBuilder();
    const scratch = new SchemaCompiler(new JsonGrammar(builder, this.languages), this.document.root, true);
    try {
      return builder.grammar(scratch.value(schemas)) !== null;
    } catch (error) {
      // Where it cannot be told, they may.
      if (asSchemaError(error) instanceof SchemaError) return true;
      throw error;
    } finally {
      this.#compared += builder.size;
    }
  }

  /** What is written for the schema has none but its own members, whether it says so or not. */
  #closed(schema: Schema | boolean): Schema | boolean {
    if (typeof schema === 'boolean' || schema.properties === undefined || schema.additionalProperties !== undefined) return schema;
    return { ...schema, additionalProperties: false };
  }

  #kind(kind: Kind, plain: readonly Schema[], excluded: Exclusions): readonly Sequence[] {
    if (excluded.kinds.has(kind)) return [];
    switch (kind) {
      case 'null':
        return [this.json.literal(null)];
      case 'boolean':
        return [this.json.literal(true), this.json.literal(false)];
      case 'integer':
        return [[this.#number(plain, true, excluded)]];
      case 'number':
        if (excluded.kinds.has('integer')) this.refuse(plain.find(({ not }) => not !== undefined) ?? {}, 'not');
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
      return this.json.spell(languageOfNumber(this.languages, bounds));
    } catch (error) {
      if (!(error instanceof MultipleError)) throw error;
      this.refuse(plain.find(({ multipleOf }) => multipleOf !== undefined) ?? {}, 'multipleOf');
      return this.json.spell(languageOfNumber(this.languages, { ...bounds, multiplesOf: [] }));
    }
  }

  #string(plain: readonly Schema[], { strings }: Exclusions): Term {
    const { languages } = this;
    const { language, min, max } = this.stringBounds(plain);
    if (language === null && strings.length === 0) {
      return min === 0 && max === Infinity ? this.json.string : this.json.stringOfLength(min, max);
    }
    const others = strings.map((each) => languages.not(each));
    return this.json.quoted(languages.all(...(language === null ? [] : [language]), ...others, languages.repeat(languages.any, min, max)));
  }

  stringBounds(plain: readonly Schema[]): StringBounds {
    return stringBounds(this, plain);
  }

  stringLanguage(plain: readonly Schema[]): Language {
    return stringLanguage(this, plain);
  }
}

function isExcluded(languages: Languages, { kinds, numbers, strings }: Exclusions, value: unknown): boolean {
  const kind = kindOf(value);
  if (kinds.has(kind) || (kind === 'integer' && kinds.has('number'))) return true;
  if (typeof value === 'number') return numbers.includes(value);
  return typeof value === 'string' && strings.some((language) => languages.has(language, value));
}

/** A schema's size as an error of the schema; other errors as they are. */
export function asSchemaError(error: unknown): unknown {
  // A range error: what is nested so deep that the stack does not hold it.
  const isTooLarge = error instanceof LanguageTooLarge || error instanceof GrammarTooLarge || error instanceof RangeError;
  return isTooLarge ? new SchemaError('unsupported', []) : error;
}
