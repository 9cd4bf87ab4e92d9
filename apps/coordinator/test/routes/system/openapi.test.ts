import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { EXAMPLE_MODEL } from '@inference/formats';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Compile } from 'typebox/compile';
import { describe, expect, it } from 'vitest';
import { COMPONENT_SCHEMAS } from '../../../src/routes/system/openapi.js';
import { MODEL, startHarness } from '../../support/harness.js';
import { BODIES, expectSignedPlain, STREAMING } from '../../support/inference-calls.js';

describe('GET /openapi.json', () => {
  it('documents every public path and refers only to its own schemas', async () => {
    const harness = await startHarness();
    try {
      const response = await harness.get('/openapi.json', null);
      expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
      const text = await response.text();
      const document = JSON.parse(text) as {
        info: object;
        paths: Record<string, Record<string, unknown>>;
        components: { schemas: object };
      };
      expect(document.info).toMatchObject({ version: expect.stringMatching(/^\d+\.\d+\.\d+$/) });
      expect(Object.keys(document.paths).sort()).toEqual(
        [
          ...STREAMING,
          '/v1/messages/count_tokens',
          '/v1/embeddings',
          '/v1/images/generations',
          '/v1/images/files/{file}',
          '/v1/catalogue',
          '/v1/models',
          '/v1/models/{id}',
          '/v1/receipts/{job_id}',
          '/v1/payments/balance',
          '/v1/payments/usage',
          '/v1/prices',
          '/v1/e2e/requests',
          '/v1/e2e/keyset',
          '/v1/e2e/records/{record_sha256}',
          '/v1/stats',
          '/v1/leaderboard',
          '/v1/network/totals',
          '/v1/network/models',
          '/v1/network/status',
          '/status.atom',
          '/v1/providers/attestation',
          '/v1/providers/me',
          '/v1/machine/earnings',
          '/health',
          '/',
          '/openapi.json',
        ].sort(),
      );
      for (const [, name = ''] of text.matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)) {
        expect(document.components.schemas).toHaveProperty(name);
      }
      for (const [path, operations] of Object.entries(document.paths)) {
        const [method = ''] = Object.keys(operations);
        const reached = await fetch(harness.url + path.replace(/\{\w+\}/, 'x'), { method: method.toUpperCase() });
        // These two routes need no API key; no image or record is named `x`.
        const open = path === '/v1/images/files/{file}' || path === '/v1/e2e/records/{record_sha256}' ? 404 : 200;
        expect([path, reached.status]).toEqual([path, 'security' in (operations[method] as object) ? open : 401]);
      }
    } finally {
      await harness.close();
    }
  });

  it('matches the responses of the routes beside inference', async () => {
    const harness = await startHarness();
    try {
      await harness.provider();
      const { receipt } = await expectSignedPlain(await harness.post('/v1/messages', BODIES['/v1/messages']), '/v1/messages');
      const described = [
        ['ModelList', '/v1/models'],
        ['Model', `/v1/models/${MODEL}`],
        ['Attestations', '/v1/providers/attestation'],
        ['Balance', '/v1/payments/balance'],
        ['Usage', '/v1/payments/usage?limit=5'],
        ['Prices', '/v1/prices'],
        ['Stats', '/v1/stats'],
        ['Leaderboard', '/v1/leaderboard'],
        ['Totals', '/v1/network/totals'],
        ['NetworkModels', '/v1/network/models'],
        ['NetworkStatus', '/v1/network/status'],
        ['SignedReceipt', `/v1/receipts/${receipt.job_id}`],
        ['Health', '/health'],
        ['Service', '/'],
      ] as const;
      for (const [name, path] of described) {
        const schema = Compile(COMPONENT_SCHEMAS[name]);
        const body = await (await harness.get(path)).json();
        expect([name, [...schema.Errors(body)]]).toEqual([name, []]);
      }
    } finally {
      await harness.close();
    }
  });
});

interface MediaType {
  readonly schema?: { readonly $ref?: string };
  readonly examples?: Readonly<Record<string, { readonly summary: string; readonly value: unknown }>>;
}

interface Operation {
  readonly summary?: string;
  readonly tags?: readonly string[];
  readonly parameters?: readonly { readonly in: string; readonly name: string; readonly example?: string }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, MediaType>> };
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: Readonly<Record<string, MediaType>> }>>;
  readonly security?: readonly unknown[];
  readonly 'x-codeSamples': readonly { readonly lang: string; readonly label: string; readonly source: string }[];
}

interface OpenApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

function operationsOf({ paths }: OpenApiDocument): { readonly name: string; readonly operation: Operation }[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ name: `${method} ${path}`, operation })),
  );
}

/** Validation errors of a value against a named schema. */
function problemsOf(reference: string | undefined, value: unknown): unknown[] {
  const name = reference?.split('/').at(-1) as keyof typeof COMPONENT_SCHEMAS;
  return [...Compile(COMPONENT_SCHEMAS[name]).Errors(value)];
}

describe('the OpenAPI document', () => {
  it('is valid, and gives every operation a summary, an example of a request, and an example of each error', async () => {
    const harness = await startHarness();
    try {
      const text = await (await harness.get('/openapi.json', null)).text();
      expect(await new Validator().validate(JSON.parse(text) as Record<string, unknown>)).toEqual({ valid: true });
      const document = JSON.parse(text) as OpenApiDocument;
      let errors = 0;
      for (const { name, operation } of operationsOf(document)) {
        expect(operation.summary, name).toMatch(/^[A-Z].*\.$/);
        expect(operation.tags?.length, name).toBe(1);
        expect(operation['x-codeSamples'][0]?.source, name).toMatch(/^curl "\$BASE\//);
        for (const parameter of operation.parameters ?? []) {
          if (parameter.in === 'path') expect(parameter.example, `${name}: ${parameter.name}`).toMatch(/^[\w.-]+$/);
        }
        for (const [type, { schema, examples = {} }] of Object.entries(operation.requestBody?.content ?? {})) {
          if (type !== 'application/json') continue;
          expect(examples, name).toHaveProperty('request');
          for (const { value } of Object.values(examples)) {
            if (schema?.$ref !== undefined) expect(problemsOf(schema.$ref, value), name).toEqual([]);
            else expect(value, name).toMatchObject({ model: EXAMPLE_MODEL });
          }
        }
        if (operation.security === undefined) expect(Object.keys(operation.responses), name).toContain('401');
        for (const [status, { description, content = {} }] of Object.entries(operation.responses)) {
          if (Number(status) < 400) continue;
          const [[type, media] = []] = Object.entries(content);
          const examples = Object.values(media?.examples ?? {});
          expect(examples.length, `${name} ${status}`).toBeGreaterThan(0);
          for (const { summary, value } of examples) {
            expect(summary, name).toMatch(/^[A-Z].*\.$/);
            if (type === 'application/json') expect(problemsOf(media?.schema?.$ref, value), `${name} ${status}`).toEqual([]);
            // `param` of an example error must be a query parameter of the operation.
            const { param } = (value as { error?: { param?: string | null } }).error ?? {};
            const queries = operation.parameters?.filter(({ in: place }) => place === 'query') ?? [];
            if (queries.length > 0 && typeof param === 'string')
              expect(
                queries.map(({ name: query }) => query),
                name,
              ).toContain(param);
            errors++;
          }
          expect(description, name).not.toBe('');
        }
      }
      expect(errors).toBeGreaterThan(150);
    } finally {
      await harness.close();
    }
  });

  it('has examples of requests that work', async () => {
    const harness = await startHarness();
    try {
      await harness.provider({ vision: { max_images: 1, max_image_tokens: 100 } });
      const document = (await (await harness.get('/openapi.json', null)).json()) as OpenApiDocument;
      const results = new Map<string, { readonly status: number; readonly body: string }>();
      for (const { name, operation } of operationsOf(document)) {
        for (const { label, source } of operation['x-codeSamples']) {
          // Skipped: samples that need a sealed request file or an OAuth token.
          if (/request\.sealed|_TOKEN/.test(source)) continue;
          const command = source.replaceAll(EXAMPLE_MODEL, MODEL).replace(/^curl /, 'curl -sS -w "\\n%{http_code}" ');
          const { stdout } = await promisify(execFile)('bash', ['-c', command], {
            env: { ...process.env, BASE: harness.url, KEY: harness.apiKey },
          });
          const [, body = '', status] = /^(.*)\n(\d+)$/s.exec(stdout) ?? [];
          results.set(label === 'curl' ? name : `${name} (${label})`, { status: Number(status), body });
        }
      }
      expect([...results.keys()].filter((name) => name.includes('image.'))).toHaveLength(4);
      // The ids in examples do not exist here, and the only model makes no images and no embeddings.
      const NOT_FOUND = ['get /v1/receipts/{job_id}', 'get /v1/images/files/{file}', 'get /v1/e2e/records/{record_sha256}'];
      const NOT_SERVED = ['post /v1/images/generations', 'post /v1/embeddings'];
      for (const [name, { status, body }] of results) {
        if (NOT_FOUND.includes(name)) expect(status, name).toBe(404);
        else if (NOT_SERVED.includes(name)) expect((JSON.parse(body) as { error: object }).error, name).toMatchObject({ param: 'model' });
        else expect(status, `${name}: ${body}`).toBe(200);
      }
      expect(results.size).toBeGreaterThan(20);
    } finally {
      await harness.close();
    }
  });
});
