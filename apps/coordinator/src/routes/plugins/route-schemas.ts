/** Route schemas, for documentation only: handlers validate. Routes without `tags` are not in the OpenAPI document. */
import type {} from '@fastify/swagger';
import type { ErrorCode } from '@inference/formats';
import type { FastifyInstance } from 'fastify';
import Type, { type TSchema } from 'typebox';

/** Accepts every request unchanged and serializes with `JSON.stringify`. For a server without routes. */
export function useDocumentationSchemas(server: FastifyInstance): void {
  server.setValidatorCompiler(() => () => true);
  server.setSerializerCompiler(() => (value) => JSON.stringify(value));
}

/** `security` of a route without credentials. */
export const NO_CREDENTIALS = [] as const;

/** Refers to a named schema of the OpenAPI document. */
export function schemaRef(name: string): TSchema & { readonly $ref: string } {
  return { $ref: `#/components/schemas/${name}` };
}

/** A JSON response with this named schema. */
export function jsonResponse(name: string, description = 'The response.') {
  return { ...schemaRef(name), description };
}

/** Errors of every route that takes an API key. */
export const KEY_ERRORS = [
  'missing_api_key',
  'invalid_api_key',
  'forbidden',
  'account_suspended',
  'rate_limit_exceeded',
] as const satisfies readonly ErrorCode[];

/** Path parameters of type string. */
export function pathParams(...names: readonly string[]) {
  return Type.Object(Object.fromEntries(names.map((name) => [name, Type.String()])));
}
