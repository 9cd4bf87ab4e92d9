/** `GET /openapi.json`: the OpenAPI 3.1 document, generated from the schemas of the routes with `tags`. */
import fastifySwagger from '@fastify/swagger';
import { INFERENCE_SCHEMAS, STATS_SCHEMAS, STATUS_SCHEMAS } from '@inference/formats';
import { AttestationFeedSchema, MachineEarningsSchema, ProviderStatusSchema } from '@inference/protocol';
import type { FastifyInstance } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import Type from 'typebox';
import { programVersion } from '../../config/program-version.js';
import { PAYMENT_SCHEMAS } from '../billing/payment-schemas.js';
import { E2E_SCHEMAS } from '../e2e/e2e-routes.js';
import { CATALOGUE_SCHEMAS } from '../inference/catalogue-schemas.js';
import { MODEL_SCHEMAS } from '../inference/model-schemas.js';
import { SignedReceiptSchema } from '../inference/receipts.js';
import { addPublicRoute } from '../plugins/public-route.js';
import { addExamples } from './openapi-examples.js';

/** Named schemas for references from routes. */
export const COMPONENT_SCHEMAS = {
  ...INFERENCE_SCHEMAS,
  ...MODEL_SCHEMAS,
  SignedReceipt: SignedReceiptSchema,
  Attestations: AttestationFeedSchema,
  ...E2E_SCHEMAS,
  ProviderStatus: ProviderStatusSchema,
  MachineEarnings: MachineEarningsSchema,
  Health: Type.Object({ status: Type.Literal('ok') }),
  Service: Type.Object({ service: Type.String() }),
  ...CATALOGUE_SCHEMAS,
  ...PAYMENT_SCHEMAS,
  ...STATS_SCHEMAS,
  ...STATUS_SCHEMAS,
};

const COMPONENTS = {
  securitySchemes: {
    bearer: { type: 'http', scheme: 'bearer' },
    apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' },
  },
} as const;

/** Collects the schemas of routes with `tags` added after this plugin. */
export const openApi = fastifyPlugin(async (server) => {
  await server.register(fastifySwagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Inference Gateway', version: programVersion() },
      security: [{ bearer: [] }, { apiKey: [] }],
      components: COMPONENTS,
    },
    hideUntagged: true,
    convertConstToEnum: false,
    // Wildcard routes take a model id, which may contain slashes.
    transform: ({ schema, url }) => ({ schema, url: url.replace('*', ':id') }),
  });
});

export function addOpenApi(server: FastifyInstance): void {
  const schema = {
    summary: 'This document.',
    tags: ['System'],
    response: { 200: { type: 'object', description: 'The OpenAPI document.' } },
  };
  let document: string | null = null;
  addPublicRoute(server, '/openapi.json', schema, (_request, reply) => {
    document ??= describe(server);
    reply.header('content-type', 'application/json; charset=utf-8').send(document);
  });
}

function describe(server: FastifyInstance): string {
  const document = server.swagger();
  addExamples(document.paths ?? {});
  // The plugin would rewrite `patternProperties` of named schemas for OpenAPI 3.0. Version 3.1 accepts JSON Schema unchanged.
  return JSON.stringify({ ...document, components: { ...COMPONENTS, schemas: COMPONENT_SCHEMAS } });
}
