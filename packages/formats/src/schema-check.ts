/** Checks a value against a TypeBox schema. The error names the field (`messages[0].content`) and quotes the `description`. */
import { lazyValidator } from '@inference/protocol';
import type { Static, TSchema } from 'typebox';
import { RequestError } from './errors/errors.js';

/** Makes a check, compiled at first use, that returns the typed value, or throws RequestError `invalid_request`. */
export function schemaCheck<Schema extends TSchema>(schema: Schema): (value: unknown) => Static<Schema> {
  const validatorOf = lazyValidator(schema);
  return (value) => {
    const validator = validatorOf();
    if (validator.Check(value)) return value as Static<Schema>;
    throw violation(schema, validator.Errors(value));
  };
}

/** Names safe to echo in an error. */
const FIELD_NAME = /^[a-z][a-z0-9_]{0,39}$/i;

interface SchemaError {
  readonly keyword: string;
  readonly schemaPath: string;
  readonly instancePath: string;
  readonly params: object;
}

function violation(schema: TSchema, errors: readonly SchemaError[]): RequestError {
  const error = deepestError(errors.map(ofNamedField));
  if (error === null) return new RequestError('invalid_request', null, 'The request is not valid.');
  const missing = missingProperty(error);
  const param = paramOf(missing === null ? error.instancePath : `${error.instancePath}/${missing}`);
  if (missing !== null) return new RequestError('invalid_request', param, `${param} is required.`);
  const subject = param === '' ? 'The request body' : param;
  const expected = descriptionAt(schema, error.schemaPath) ?? 'a valid value';
  return new RequestError('invalid_request', param === '' ? null : param, `${subject} must be ${expected}.`);
}

/** An unexpected member is reported at its object, unless its name looks like a field name: names are client text. */
function ofNamedField(error: SchemaError): SchemaError {
  if (error.keyword !== 'boolean') return error;
  const name = error.instancePath.lastIndexOf('/');
  return FIELD_NAME.test(error.instancePath.slice(name + 1)) ? error : { ...error, instancePath: error.instancePath.slice(0, name) };
}

/** Unions report every branch; the branch with the deepest path is probably the intended branch. */
function deepestError(errors: readonly SchemaError[]): SchemaError | null {
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

/** `/messages/0/content` as `messages[0].content`. Contains only field names. */
function paramOf(instancePath: string): string {
  return instancePath
    .split('/')
    .slice(1)
    .map((step) => (/^\d+$/.test(step) ? `[${step}]` : `.${step}`))
    .join('')
    .replace(/^\./, '');
}

/** The innermost `description` on the way to a place in the schema. */
function descriptionAt(schema: TSchema, schemaPath: string): string | null {
  let node: unknown = schema;
  let description: string | null = null;
  for (const step of ['', ...schemaPath.split('/').slice(1)]) {
    if (step !== '') node = memberOf(node, step);
    const own = memberOf(node, 'description');
    if (typeof own === 'string') description = own;
  }
  return description;
}

function memberOf(node: unknown, name: string): unknown {
  return typeof node === 'object' && node !== null ? (node as Readonly<Record<string, unknown>>)[name] : undefined;
}
