/**
 * `schemaCheck` validates values against a TypeBox schema, with readable errors: "messages[0].content must be a string.".
 *
 * The text after "must be" is the `description` in the schema.
 */
import { lazyValidator } from '@inference/protocol';
import type { Static, TSchema } from 'typebox';
import { RequestError } from './errors/errors.js';

/** Returns a check that returns the typed value, or throws RequestError `invalid_request`. Compiles the schema at first use. */
export function schemaCheck<Schema extends TSchema>(schema: Schema): (value: unknown) => Static<Schema> {
  const validatorOf = lazyValidator(schema);
  return (value) => {
    const validator = validatorOf();
    if (validator.Check(value)) return value as Static<Schema>;
    throw violation(schema, validator.Errors(value));
  };
}

/** Names that an error may repeat. Other names may be client content. */
const FIELD_NAME = /^[a-z][a-z0-9_]{0,39}$/i;

/** TypeBox's keyword for members that `additionalProperties: false` forbids. */
const UNKNOWN_MEMBER = 'boolean';

interface SchemaError {
  readonly keyword: string;
  readonly schemaPath: string;
  readonly instancePath: string;
  readonly params: object;
}

function violation(schema: TSchema, errors: readonly SchemaError[]): RequestError {
  const error = deepestError(errors.map(ofNamedField));
  if (error === null) return new RequestError('invalid_request', null, 'The request is not valid.');
  if (isUnknownMember(error)) return unknownMember(schema, error);
  const missing = missingProperty(error);
  const param = paramOf(missing === null ? error.instancePath : `${error.instancePath}/${missing}`);
  if (missing !== null) return new RequestError('invalid_request', param, `${param} is required.`);
  const expected = descriptionAt(schema, error.schemaPath);
  const described = expected === null ? param : paramOf(pathUpTo(error.instancePath, expected.depth));
  const demand = `${described === '' ? 'The request body' : described} must be ${expected?.text ?? 'a valid value'}.`;
  return new RequestError(
    'invalid_request',
    param === '' ? null : param,
    described === param ? demand : `${param} is not valid: ${demand}`,
  );
}

const MAX_LISTED_FIELDS = 12;

/** Whether the error is an unknown member outside a union. Within one, the object may belong to another branch. */
function isUnknownMember({ keyword, schemaPath }: SchemaError): boolean {
  return keyword === UNKNOWN_MEMBER && schemaPath.endsWith('/additionalProperties') && !/\/(?:any|one)Of\//.test(schemaPath);
}

function unknownMember(schema: TSchema, { instancePath, schemaPath, isNamed }: NamedError): RequestError {
  const param = paramOf(instancePath);
  const problem = isNamed ? `${param} is not a known field.` : `${param === '' ? 'The request body' : param} has an unknown field.`;
  const object = schemaPath.split('/').slice(1, -1).reduce(memberOf, schema);
  const known = Object.keys((memberOf(object, 'properties') as object | undefined) ?? {});
  const listed = known.length === 0 || known.length > MAX_LISTED_FIELDS ? '' : ` Known fields: ${known.join(', ')}.`;
  return new RequestError('invalid_request', param === '' ? null : param, problem + listed);
}

interface NamedError extends SchemaError {
  /** Whether the path still ends with the member that is wrong. False if the name of an unknown member was removed. */
  readonly isNamed: boolean;
}

/**
 * If the name of an unknown member may be part of a prompt, which errors must not repeat, shortens the path to the object that contains
 * the member.
 */
function ofNamedField(error: SchemaError): NamedError {
  const name = error.instancePath.lastIndexOf('/');
  if (error.keyword !== UNKNOWN_MEMBER || FIELD_NAME.test(error.instancePath.slice(name + 1))) return { ...error, isNamed: true };
  return { ...error, instancePath: error.instancePath.slice(0, name), isNamed: false };
}

/** Unions report errors of every branch. Of the errors below the first one's path, the longest path is probably of the intended branch. */
function deepestError(errors: readonly NamedError[]): NamedError | null {
  const [first, ...others] = errors;
  if (first === undefined) return null;
  let best = first;
  for (const other of others) {
    const within = other.instancePath.startsWith(`${first.instancePath}/`);
    if (within && other.instancePath.length > best.instancePath.length) best = other;
  }
  return best;
}

function missingProperty(error: SchemaError): string | null {
  if (error.keyword !== 'required' || !('requiredProperties' in error.params)) return null;
  const names = error.params.requiredProperties;
  return Array.isArray(names) && typeof names[0] === 'string' ? names[0] : null;
}

/** Converts `/messages/0/content` to `messages[0].content`, up to the first step that may be client content. */
function paramOf(instancePath: string): string {
  const steps = instancePath.split('/').slice(1);
  const unnamed = steps.findIndex((step) => !/^\d+$/.test(step) && !FIELD_NAME.test(step));
  return steps
    .slice(0, unnamed === -1 ? steps.length : unnamed)
    .map((step) => (/^\d+$/.test(step) ? `[${step}]` : `.${step}`))
    .join('')
    .replace(/^\./, '');
}

interface Description {
  readonly text: string;
  /** Number of steps in the path of the described value. */
  readonly depth: number;
}

/** Schema keywords that lead to a member or an element, one level deeper in the value. */
const DESCENDING: ReadonlySet<string> = new Set(['properties', 'patternProperties', 'additionalProperties', 'items']);

/** The innermost description on the path to `schemaPath`. The description of a union takes precedence over its branches. */
function descriptionAt(schema: TSchema, schemaPath: string): Description | null {
  let node: unknown = schema;
  let depth = 0;
  let description: Description | null = null;
  for (const step of ['', ...schemaPath.split('/').slice(1)]) {
    if (step !== '') node = memberOf(node, step);
    if (DESCENDING.has(step)) depth++;
    const text = memberOf(node, 'description');
    if (typeof text === 'string' && (description === null || depth > description.depth)) description = { text, depth };
  }
  return description;
}

function pathUpTo(instancePath: string, depth: number): string {
  return instancePath
    .split('/')
    .slice(0, depth + 1)
    .join('/');
}

function memberOf(node: unknown, name: string): unknown {
  return typeof node === 'object' && node !== null ? (node as Readonly<Record<string, unknown>>)[name] : undefined;
}
