/** `GET /openapi.json`: the description of every public address, made once from the schemas of the parts that serve them. */
import { readFileSync } from 'node:fs';
import { openApiDocument } from '@inference/formats';
import type { FastifyInstance } from 'fastify';
import { PATHS, SCHEMAS } from './openapi-paths.js';

export function addOpenApi(server: FastifyInstance): void {
  const text = JSON.stringify(openApiDocument({ version: packageVersion(), paths: PATHS, schemas: SCHEMAS }));
  server.get('/openapi.json', (_request, reply) => {
    reply.header('content-type', 'application/json; charset=utf-8').send(text);
  });
}

function packageVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
