/**
 * Helpers for route schemas. Fastify uses the schemas only for the OpenAPI document. Handlers validate requests themselves. Routes without
 * `tags` are not in the document.
 */
import type {} from '@fastify/swagger';
import type { ErrorCode } from '@inference/formats';
import type { FastifyInstance } from 'fastify';
import Type, { type TSchema } from 'typebox';

/** Disables validation and serialization by schema. Must be called before routes are registered. */
export function useDocumentationSchemas(server: FastifyInstance): void {
  server.setValidatorCompiler(() => () => true);
  server.setSerializerCompiler(() => (value) => JSON.stringify(value));
}

/** `security` of a route without credentials. */
export const NO_CREDENTIALS = [] as const;

/** Reference to a named schema of the OpenAPI document. */
export function schemaRef(name: string): TSchema & { readonly $ref: string } {
  return { $ref: `#/components/schemas/${name}` };
}

export function jsonResponse(name: string) {
  return { ...schemaRef(name), description: 'The response.' };
}

export const KEY_ERRORS = [
  'missing_api_key',
  'invalid_api_key',
  'forbidden',
  'account_suspended',
  'rate_limit_exceeded',
] as const satisfies readonly ErrorCode[];

export function pathParams(...names: readonly string[]) {
  return Type.Object(Object.fromEntries(names.map((name) => [name, Type.String()])));
}
