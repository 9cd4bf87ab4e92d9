/** Route schemas, for documentation only: handlers validate. Routes without `tags` are not in the OpenAPI document. */
import type {} from '@fastify/swagger';
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

/** Error responses with these statuses, in the OpenAI format. */
export function errorResponses(...statuses: readonly number[]): Readonly<Record<number, object>> {
  return Object.fromEntries(statuses.map((status) => [status, jsonResponse('OpenAiError', 'An error.')]));
}

/** Path parameters of type string. */
export function pathParams(...names: readonly string[]) {
  return Type.Object(Object.fromEntries(names.map((name) => [name, Type.String()])));
}
