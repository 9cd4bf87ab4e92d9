/** `queryReader` parses query strings by a schema. Unknown parameters are ignored, and repeated or invalid parameters are errors. */
import { RequestError } from '@inference/formats';
import { type ProviderId, ProviderIdSchema } from '@inference/protocol';
import type { Static, TObject, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';

interface Parameter {
  readonly name: string;
  readonly integer: boolean;
  readonly fallback: unknown;
  readonly description: string;
  check(value: unknown): boolean;
}

/** Creates a reader of request URLs from a schema of string and integer properties. Throws RequestError `invalid_request`. */
export function queryReader<Schema extends TObject>(schema: Schema): (url: string) => Static<Schema> {
  const parameters = Object.entries(schema.properties).map(([name, property]) => parameterOf(name, property));
  return (url) => {
    const search = new URLSearchParams(url.includes('?') ? url.slice(url.indexOf('?') + 1) : '');
    const entries = parameters.map((parameter) => [parameter.name, readParameter(parameter, search.getAll(parameter.name))]);
    return Object.fromEntries(entries.filter(([, value]) => value !== undefined)) as Static<Schema>;
  };
}

function parameterOf(name: string, property: TSchema): Parameter {
  const { type, default: fallback, description = 'a valid value' } = property as { type?: string; default?: unknown; description?: string };
  const validator = Compile(property);
  return { name, integer: type === 'integer', fallback, description, check: (value) => validator.Check(value) };
}

function readParameter(parameter: Parameter, values: readonly string[]): unknown {
  const [text, second] = values;
  if (text === undefined) return parameter.fallback;
  if (second !== undefined) throw new RequestError('invalid_request', parameter.name, `${parameter.name} may be given only once.`);
  const value = parameter.integer ? parseQueryInteger(text) : text;
  if (!parameter.check(value)) {
    throw new RequestError('invalid_request', parameter.name, messageOf(parameter));
  }
  return value;
}

/** Accepts only decimal digits without leading zeros, so that each number has a single spelling. Returns null for other texts. */
export function parseQueryInteger(text: unknown): number | null {
  return typeof text === 'string' && /^(?:0|[1-9]\d{0,14})$/.test(text) ? Number(text) : null;
}

/** Error of an invalid parameter, as an example for the OpenAPI document. */
export function queryErrorExample(schema: TObject, name: string) {
  const property = schema.properties[name];
  if (property === undefined) throw new Error(`the schema has no parameter ${name}`);
  return { invalid_request: { message: messageOf(parameterOf(name, property)), param: name } };
}

function messageOf({ name, description }: Parameter): string {
  return `${name} must be ${description}.`;
}

const providerId = Compile(ProviderIdSchema);

/** Parses a provider id. Throws RequestError for a malformed id. */
export function parseProviderId(text: string): ProviderId {
  if (providerId.Check(text)) return text;
  throw new RequestError('invalid_request', 'provider_id', 'provider_id must be the id of a provider.');
}
