/** Entries that a running coordinator adds to the transparency log. */
import { decodeEntryBundle, type LogEntry, openCheckpoint, parseLogEntry, parseNoteKey } from '@inference/protocol';
import { nodeLogCrypto, sha256 } from '@inference/protocol/crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Harness, startCoordinator } from '../support/harness.js';

let harness: Harness;

beforeAll(async () => {
  harness = await startCoordinator();
});
afterAll(() => harness.close());

async function get(path: string): Promise<Response> {
  return fetch(`${harness.url}/e2e/log/${path}`);
}

async function entries(): Promise<LogEntry[]> {
  const key = parseNoteKey(sha256, (await (await get('key')).text()).trim());
  const { origin, size } = openCheckpoint(nodeLogCrypto, await (await get('checkpoint')).text(), key, []);
  expect(origin).toBe('localhost/e2e/log');
  if (size === 0) return [];
  const bundle = await (await get(`tile/entries/000.p/${size}`)).arrayBuffer();
  return decodeEntryBundle(new Uint8Array(bundle)).map(parseLogEntry);
}

it('contains a quarantine and the connected providers', async () => {
  const provider = await harness.provider();
  const { providerId } = provider;
  const response = await fetch(`${harness.url}/admin/v1/providers/${providerId}/quarantine`, {
    method: 'POST',
    headers: { authorization: `Bearer ${harness.adminKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ reason: 'test' }),
  });
  expect(response.status).toBe(200);
  await harness.until(async () => (await entries()).length === 2);
  const [revoked, joined] = await entries();
  expect(revoked).toMatchObject({ kind: 'revoked', provider_id: providerId });
  expect(joined).toMatchObject({ kind: 'provider', provider_id: providerId });
});
