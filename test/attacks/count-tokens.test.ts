/** An unfunded account requests token counts of maximum-size bodies without pause. A concurrent paying client is unaffected. */
import { MAX_REQUEST_BYTES } from '@inference/protocol';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type FaultNetwork, startFaultNetwork } from '../support/faults/network.js';
import { ask } from '../support/verified-client.js';

const LOOPS = 10;
const PAID_REQUESTS = 8;

let faults: FaultNetwork;

beforeAll(async () => {
  faults = await startFaultNetwork({ agents: 2 });
});
afterAll(() => faults?.dispose());

interface ProviderState {
  readonly provider_id: string;
  readonly connected_at: string;
}

async function providers(): Promise<ProviderState[]> {
  const { baseUrl, adminKey } = faults.network;
  const response = await fetch(`${baseUrl}/admin/v1/providers`, { headers: { authorization: `Bearer ${adminKey}` } });
  return ((await response.json()) as { providers: ProviderState[] }).providers;
}

it('counting large bodies for free stops neither paying clients nor machines', async () => {
  const { network, customers } = faults;
  const attacker = await customers.customer(0);
  const paying = await customers.customer();
  const before = await providers();
  expect(before).toHaveLength(2);
  const frame = JSON.stringify({ model: network.model, messages: [{ role: 'user', content: '' }] });
  const body = frame.replace('""', `"${'word '.repeat(MAX_REQUEST_BYTES / 5 - 100)}"`);
  expect(body.length).toBeGreaterThan(0.99 * MAX_REQUEST_BYTES);
  let isOver = false;
  const statuses = new Map<number, number>();
  const attack = async (): Promise<void> => {
    while (!isOver) {
      const response = await fetch(`${network.baseUrl}/v1/messages/count_tokens`, {
        method: 'POST',
        headers: { 'x-api-key': attacker.apiKey, 'content-type': 'application/json' },
        body,
      }).catch(() => null);
      await response?.arrayBuffer().catch(() => {});
      statuses.set(response?.status ?? 0, (statuses.get(response?.status ?? 0) ?? 0) + 1);
    }
  };
  const loops = Array.from({ length: LOOPS }, attack);
  // Some requests succeed before the paying client starts.
  await expect.poll(() => statuses.size).toBeGreaterThan(0);
  const answers: string[] = [];
  for (let index = 0; index < PAID_REQUESTS; index++) {
    const more = { temperature: 0 };
    const answer = await ask(paying, { model: network.model, prompt: 'Hi!', maxTokens: 8, stream: index % 2 === 0, more });
    answers.push(answer.kind === 'refused' ? String(answer.status) : answer.kind);
  }
  isOver = true;
  await Promise.all(loops);
  expect(answers).toEqual(Array.from({ length: PAID_REQUESTS }, () => 'verified'));
  // The same connections as before.
  const identity = ({ provider_id, connected_at }: ProviderState): string => `${provider_id} ${connected_at}`;
  expect((await providers()).map(identity).sort()).toEqual(before.map(identity).sort());
  // Refusals state the rate limit.
  expect([...statuses.keys()].filter((status) => ![200, 429, 529].includes(status))).toEqual([]);
});
