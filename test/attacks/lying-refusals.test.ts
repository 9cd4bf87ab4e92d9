/** Malicious providers that claim fast chips reject every job as an invalid request. Clients still get answers. */
import type { JobFailure } from '@inference/protocol';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { type FaultNetwork, startFaultNetwork } from '../support/faults/network.js';
import { LightAgent } from '../support/light/agent.js';
import { ask } from '../support/verified-client.js';

const REQUESTS = 60;
const AT_ONCE = 6;

let faults: FaultNetwork;
const agents: LightAgent[] = [];

beforeAll(async () => {
  faults = await startFaultNetwork({ agents: 0 });
});
afterEach(() => {
  for (const agent of agents.splice(0)) agent.leave();
});
afterAll(() => faults?.dispose());

const join = async (model: string, lie?: JobFailure): Promise<LightAgent> => {
  const agent = await LightAgent.join({
    url: faults.network.baseUrl,
    models: [model],
    ...(lie === undefined ? {} : { hardware: { bandwidth_gbs: 800 }, onJob: (job) => job.fail(lie) }),
  });
  agents.push(agent);
  return agent;
};

/** Outcome and cost of each request of one paying client. */
async function requestsOf(model: string): Promise<string[]> {
  const { customers } = faults;
  const paying = await customers.customer();
  const ends: string[] = [];
  const receipts: Parameters<typeof customers.audit>[1][number][] = [];
  let asked = 0;
  const client = async (): Promise<void> => {
    while (asked < REQUESTS) {
      const stream = asked++ % 2 === 0;
      const answer = await ask(paying, { model, stream });
      ends.push(answer.kind === 'refused' ? `${answer.status} ${answer.code}` : answer.kind);
      if (answer.kind === 'verified') receipts.push(answer.receipt);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, client));
  expect(await customers.audit(paying, receipts)).toEqual([]);
  return ends;
}

async function statusOf(agent: LightAgent): Promise<string> {
  const { baseUrl, adminKey } = faults.network;
  const response = await fetch(`${baseUrl}/admin/v1/providers`, { headers: { authorization: `Bearer ${adminKey}` } });
  const { providers } = (await response.json()) as { providers: { provider_id: string; status: string }[] };
  return providers.find(({ provider_id }) => provider_id === agent.providerId)?.status ?? 'gone';
}

const ALL_VERIFIED = Array.from({ length: REQUESTS }, () => 'verified');

it('a limit below the offered context is found to be a lie, and the liar leaves', async () => {
  const model = 'light/obvious';
  const liar = await join(model, { code: 'context_length_exceeded', limit: 1 });
  await join(model);
  expect(await requestsOf(model)).toEqual(ALL_VERIFIED);
  expect(await statusOf(liar)).toBe('quarantined');
});

it('so is a likely limit, once another machine has answered the same prompt', async () => {
  const model = 'light/likely';
  const liar = await join(model, { code: 'context_length_exceeded', limit: 131_072, actual: 140_000 });
  await join(model);
  expect(await requestsOf(model)).toEqual(ALL_VERIFIED);
  expect(await statusOf(liar)).toBe('quarantined');
});

it('a request called invalid is answered elsewhere, and the liar is left alone', async () => {
  const model = 'light/invalid';
  const liar = await join(model, { code: 'invalid_request', param: 'messages' });
  await join(model);
  expect(await requestsOf(model)).toEqual(ALL_VERIFIED);
  expect(liar.counts.jobs).toBeLessThan(REQUESTS / 2);
});
