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
        // No image has that name, and no record that hash; both routes take no key.
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
