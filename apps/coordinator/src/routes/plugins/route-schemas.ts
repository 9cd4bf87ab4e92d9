/**
 * Schemas of routes. They document the routes; handlers validate by themselves, so that every refusal has the error format of its path
 * and request bodies stay the exact bytes that were sent. Only routes with `tags` are in the OpenAPI document.
 */
import type { FastifyInstance } from 'fastify';
import Type, { type TSchema } from 'typebox';

declare module 'fastify' {
  interface FastifySchema {
    readonly summary?: string;
    readonly tags?: readonly string[];
    /** Empty: the route takes no credentials. Absent: the security of the whole document. */
    readonly security?: readonly { readonly [scheme: string]: readonly string[] }[];
  }
}

/** Accepts every request unchanged and writes responses as `JSON.stringify` does. For a server that has no routes yet. */
export function useDocumentationSchemas(server: FastifyInstance): void {
  server.setValidatorCompiler(() => () => true);
  server.setSerializerCompiler(() => (value) => JSON.stringify(value));
}

/** `security` of a route that takes no credentials. */
export const NO_CREDENTIALS = [] as const;

/** Refers to a named schema of the OpenAPI document. */
export function schemaRef(name: string): TSchema & { readonly $ref: string } {
  return { $ref: `#/components/schemas/${name}` };
}

/** A response with a JSON body of this named schema. */
export function jsonResponse(name: string, description = 'The response.') {
  return { ...schemaRef(name), description };
}

/** Error responses with these statuses, in the OpenAI format. */
export function errorResponses(...statuses: readonly number[]): Readonly<Record<number, object>> {
  return Object.fromEntries(statuses.map((status) => [status, jsonResponse('OpenAiError', 'An error.')]));
}

/** Path parameters, all of them strings. */
export function pathParams(...names: readonly string[]) {
  return Type.Object(Object.fromEntries(names.map((name) => [name, Type.String()])));
}
