/** `GET /openapi.json`: the OpenAPI document of every public route, built once from the schemas of the rooms. */
import { createRequire } from 'node:module';
import { openApiDocument } from '@inference/formats';
import type { FastifyInstance } from 'fastify';
import { addPublicRoute } from '../plugins/public-route.js';
import { PATHS, SCHEMAS } from './openapi-paths.js';

export function addOpenApi(server: FastifyInstance): void {
  const text = JSON.stringify(openApiDocument({ version: programVersion(), paths: PATHS, schemas: SCHEMAS }));
  const schema = {
    summary: 'This document.',
    tags: ['System'],
    response: { 200: { type: 'object', description: 'The OpenAPI document.' } },
  };
  addPublicRoute(server, '/openapi.json', schema, (_request, reply) => {
    reply.header('content-type', 'application/json; charset=utf-8').send(text);
  });
}

export function programVersion(): string {
  return (createRequire(import.meta.url)('#package.json') as { version: string }).version;
}
