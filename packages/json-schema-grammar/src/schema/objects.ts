/** `objectRule` builds the grammar rule of an object: the schema's members in order, then additional members. */
import type { Sequence, Term } from '../grammar/grammar.js';
import { countOf } from './scalars.js';
import type { SchemaCompiler } from './schema-compiler.js';
import type { Schema } from './schema-document.js';

/** A member with a known name. */
interface Member {
  readonly name: string;
  readonly isRequired: boolean;
  /** Rule of the value. */
  readonly value: Term;
}

/** `plain`: schemas without `$ref` and `allOf`, all of which must match. Throws SchemaError. */
export function objectRule(compiler: SchemaCompiler, plain: readonly Schema[]): Term {
  const { builder, document, json } = compiler;
  const members = membersOf(compiler, plain);
  const min = Math.max(0, ...plain.map((schema) => countOf(document, schema, 'minProperties') ?? 0));
  const max = Math.min(Infinity, ...plain.map((schema) => countOf(document, schema, 'maxProperties') ?? Infinity));
  const additional = additionalMember(compiler, plain, members);
  const required = members.filter(({ isRequired }) => isRequired).length;
  // The model may repeat the name of an additional member, and a parser counts it once. So only one counts towards the minimum.
  const withMinimum = plain.find(({ minProperties }) => minProperties !== undefined);
  if (additional !== null && withMinimum !== undefined && min > required + 1) compiler.reportUnsupported(withMinimum, 'minProperties');

  const close = [json.whitespace, ...builder.text('}')];
  /** Member counts from this bound on need no separate rules. */
  const bound = Math.max(1, min, max === Infinity ? 0 : max + 1);
  /** Text before a member, after `written` members. */
  const separator = (written: number) => (written > 0 ? [...builder.text(','), json.whitespace] : [json.whitespace]);
  /** Results of `after`, by its arguments. */
  const rules = new Map<string, Term>();
  /** Rule of the object's rest: members from `index` on, after `written` members were written. */
  const after = (index: number, written: number): Term => {
    const key = `${index} ${written}`;
    const known = rules.get(key);
    if (known !== undefined) return known;
    const rule = builder.reserve();
    rules.set(key, rule);
    const more = Math.min(written + 1, bound);
    const member = members[index];
    const alternatives: Sequence[] = [];
    if (member !== undefined) {
      if (written < max) {
        const name = [...json.literal(member.name), ...builder.text(':'), json.space];
        alternatives.push([...separator(written), ...name, member.value, after(index + 1, more)]);
      }
      if (!member.isRequired) alternatives.push([after(index + 1, written)]);
    } else {
      if (written >= min && written <= max) alternatives.push(close);
      if (additional !== null && written < max) alternatives.push([...separator(written), additional, after(index, more)]);
    }
    return builder.define(rule, alternatives);
  };
  return builder.rule([...builder.text('{'), after(0, 0)]);
}

function membersOf(compiler: SchemaCompiler, plain: readonly Schema[]): readonly Member[] {
  const { document } = compiler;
  const names = new Set(plain.flatMap((schema) => Object.keys(propertiesOf(compiler, schema))));
  const required = new Set(plain.flatMap((schema) => requiredOf(compiler, schema)));
  for (const name of required) names.add(name);
  return [...names].map((name) => {
    const schemas = plain.flatMap((schema) => {
      const properties = propertiesOf(compiler, schema);
      if (Object.hasOwn(properties, name)) return [document.inner(schema, properties[name], 'properties', name)];
      const others = schema.additionalProperties;
      return others === undefined ? [] : [document.inner(schema, others, 'additionalProperties')];
    });
    const isAllowed = plain.every((schema) => isNameAllowed(compiler, schema, name));
    return { name, isRequired: required.has(name), value: compiler.nestedValue(isAllowed ? schemas : [false]) };
  });
}

/** Rule of an additional member. Null if the schema forbids such members, or names members without `additionalProperties`. */
function additionalMember(compiler: SchemaCompiler, plain: readonly Schema[], members: readonly Member[]): Term | null {
  const { builder, document, json, languages } = compiler;
  const constraining = plain.filter(({ additionalProperties }) => additionalProperties !== undefined);
  const isOpen = members.length === 0 && plain.every(({ properties }) => properties === undefined);
  if (constraining.length === 0 && !isOpen) return null;
  const schemas = constraining.map((schema) => document.inner(schema, schema.additionalProperties, 'additionalProperties'));
  if (schemas.includes(false)) return null;
  const names = plain.flatMap((schema) => nameSchemas(compiler, schema));
  const isAnyName = names.length === 0 && members.length === 0;
  const taken = members.map(({ name }) => languages.complement(languages.text(name)));
  const name = isAnyName ? json.string : json.quoted(languages.intersection(compiler.stringLanguage(names), ...taken));
  const value = schemas.every((schema) => schema === true) ? json.value() : compiler.nestedValue(schemas);
  return builder.rule([name, ...builder.text(':'), json.space, value]);
}

/** Whether a schema's `propertyNames` allows a name. */
function isNameAllowed(compiler: SchemaCompiler, schema: Schema, name: string): boolean {
  const schemas = nameSchemas(compiler, schema);
  return schemas.length === 0 || compiler.languages.contains(compiler.stringLanguage(schemas), name);
}

/** Schemas of `propertyNames`, all of which a name must match. */
function nameSchemas(compiler: SchemaCompiler, schema: Schema): readonly Schema[] {
  if (schema.propertyNames === undefined) return [];
  const plain = compiler.document.flatten([compiler.document.inner(schema, schema.propertyNames, 'propertyNames')]);
  if (plain === null) return NO_NAME;
  const isKnown = plain.every((each) => Object.keys(each).every((keyword) => NAME_KEYWORDS.includes(keyword)));
  if (!isKnown) compiler.reportUnsupported(schema, 'propertyNames');
  return plain;
}

/** Schema that matches no name, for `propertyNames: false`. */
const NO_NAME: readonly Schema[] = [{ enum: [] }];

/** Keywords that are enforced or have no effect in `propertyNames`. */
const NAME_KEYWORDS = ['type', 'pattern', 'format', 'minLength', 'maxLength', 'enum', 'const', 'title', 'description', '$comment'];

function propertiesOf({ document }: SchemaCompiler, schema: Schema): Schema {
  const { properties } = schema;
  if (properties === undefined) return {};
  const isObject = typeof properties === 'object' && properties !== null && !Array.isArray(properties);
  return isObject ? (properties as Schema) : document.invalid(schema, 'properties');
}

function requiredOf({ document }: SchemaCompiler, schema: Schema): readonly string[] {
  const { required } = schema;
  // In draft 3, `required` is a boolean in each property.
  if (required === undefined || typeof required === 'boolean') return [];
  const isNames = Array.isArray(required) && required.every((name) => typeof name === 'string');
  return isNames ? required : document.invalid(schema, 'required');
}
