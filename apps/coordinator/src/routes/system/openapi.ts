/** `GET /openapi.json`: the OpenAPI 3.1 document of every public route, generated from the schemas that the routes declare. */
import { createRequire } from 'node:module';
import { INFERENCE_SCHEMAS, STATS_SCHEMAS } from '@inference/formats';
import { AttestationFeedSchema, MachineEarningsSchema, ProviderStatusSchema } from '@inference/protocol';
import type { FastifyInstance, FastifySchema } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import Type from 'typebox';
import { PAYMENT_SCHEMAS } from '../billing/payment-schemas.js';
import { CATALOGUE_SCHEMAS } from '../inference/catalogue-schemas.js';
import { MODEL_SCHEMAS } from '../inference/model-schemas.js';
import { SignedReceiptSchema } from '../inference/receipts.js';
import { addPublicRoute } from '../plugins/public-route.js';

declare module 'fastify' {
  interface FastifyInstance {
    /** Path items of the documented routes, by OpenAPI path. */
    readonly openApiPaths: Readonly<Record<string, Readonly<Record<string, object>>>>;
  }
}

/** Schemas that routes refer to by name. */
export const COMPONENT_SCHEMAS = {
  ...INFERENCE_SCHEMAS,
  ...MODEL_SCHEMAS,
  SignedReceipt: SignedReceiptSchema,
  Attestations: AttestationFeedSchema,
  ProviderStatus: ProviderStatusSchema,
  MachineEarnings: MachineEarningsSchema,
  Health: Type.Object({ status: Type.Literal('ok') }),
  Service: Type.Object({ service: Type.String() }),
  ...CATALOGUE_SCHEMAS,
  ...PAYMENT_SCHEMAS,
  ...STATS_SCHEMAS,
};

/** Collects the schemas of routes with `tags` added after this plugin. */
export const openApiPaths = fastifyPlugin(async (server) => {
  const paths: Record<string, Record<string, object>> = {};
  server.addHook('onRoute', ({ url, method, schema }) => {
    if (schema?.tags === undefined) return;
    // A wildcard is a model id, with possible slashes.
    const path = url.replace('*', ':id').replace(/:(\w+)/g, '{$1}');
    const operation = operationOf(schema);
    for (const name of [method].flat()) {
      if (name !== 'HEAD') paths[path] = { ...paths[path], [name.toLowerCase()]: operation };
    }
  });
  server.decorate('openApiPaths', paths);
});

export function addOpenApi(server: FastifyInstance): void {
  const schema = {
    summary: 'This document.',
    tags: ['System'],
    response: { 200: { type: 'object', description: 'The OpenAPI document.' } },
  };
  let document: string | null = null;
  addPublicRoute(server, '/openapi.json', schema, (_request, reply) => {
    document ??= JSON.stringify({
      openapi: '3.1.0',
      info: { title: 'Inference Gateway', version: programVersion() },
      security: [{ bearer: [] }, { apiKey: [] }],
      paths: server.openApiPaths,
      components: {
        securitySchemes: {
          bearer: { type: 'http', scheme: 'bearer' },
          apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' },
        },
        schemas: COMPONENT_SCHEMAS,
      },
    });
    reply.header('content-type', 'application/json; charset=utf-8').send(document);
  });
}

export function programVersion(): string {
  return (createRequire(import.meta.url)('#package.json') as { version: string }).version;
}

type JsonSchema = Readonly<Record<string, unknown>>;

/** Operation object of a Fastify route schema, whose parts Fastify types as unknown. */
function operationOf({ summary, tags, security, params, querystring, headers, body, response }: FastifySchema): object {
  const parameters = [...parametersOf('path', params), ...parametersOf('query', querystring), ...parametersOf('header', headers)];
  const responses = Object.entries(response as Readonly<Record<string, JsonSchema>>);
  return {
    summary,
    tags,
    ...(security === undefined ? {} : { security }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined ? {} : { requestBody: { required: true, content: { 'application/json': { schema: body } } } }),
    responses: Object.fromEntries(responses.map(([status, schema]) => [status, responseOf(schema)])),
  };
}

function parametersOf(location: 'path' | 'query' | 'header', schema: unknown): object[] {
  if (schema === undefined) return [];
  const { properties, required = [] } = schema as { properties: Readonly<Record<string, JsonSchema>>; required?: readonly string[] };
  return Object.entries(properties).map(([name, { description, ...property }]) => ({
    name,
    in: location,
    required: required.includes(name),
    ...(description === undefined ? {} : { description }),
    schema: property,
  }));
}

/** A response declares a JSON schema, its content by media type, or the type null for no body. */
function responseOf({ description, headers, content, ...schema }: JsonSchema): object {
  const body = content ?? (schema.type === 'null' ? undefined : { 'application/json': { schema } });
  return {
    description,
    ...(headers === undefined ? {} : { headers: headersOf(headers) }),
    ...(body === undefined ? {} : { content: body }),
  };
}

function headersOf(headers: unknown): object {
  const entries = Object.entries(headers as Readonly<Record<string, JsonSchema>>);
  return Object.fromEntries(entries.map(([name, { description, ...schema }]) => [name, { description, schema }]));
}
