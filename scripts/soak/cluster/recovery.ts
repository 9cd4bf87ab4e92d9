/** `untilRecovered`: waits until every coordinator is ready, counts the expected providers of each model, and answers a request. */
import { setTimeout as delay } from 'node:timers/promises';
import { ask } from '../../../test/support/verified-client.js';
import { type Coordinator, LIGHT_MODEL, type SoakCluster } from './soak-cluster.js';

const POLL_MS = 100;
const CHECK_MS = 10_000;

/** Resolves to null after the recovery; at `deadline` (`performance.now()`) or on abort, to the last problem found. */
export async function untilRecovered(cluster: SoakCluster, deadline: number, signal: AbortSignal): Promise<string | null> {
  for (;;) {
    const results = await Promise.all(cluster.coordinators.map((coordinator) => problemOf(cluster, coordinator)));
    const found = results.find((text) => text !== null) ?? null;
    if (found === null || performance.now() > deadline || signal.aborted) return found;
    await delay(POLL_MS);
  }
}

/** A coordinator's problem, or null. */
async function problemOf(cluster: SoakCluster, { url, index }: Coordinator): Promise<string | null> {
  const name = `coordinator-${index + 1}`;
  const { apiKey } = cluster.network;
  const signal = AbortSignal.timeout(CHECK_MS);
  try {
    const ready = await fetch(`${url}/health/ready`, { signal });
    await ready.arrayBuffer();
    if (!ready.ok) return `${name} is not ready`;
    const response = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${apiKey}` }, signal });
    if (!response.ok) return `${name} lists no models: ${response.status}`;
    // A response of the public API.
    const { data } = (await response.json()) as { data: { id: string; metadata: { provider_count: number } }[] };
    for (const [model, expected] of Object.entries(cluster.providerCountByModel)) {
      const count = data.find(({ id }) => id === model)?.metadata.provider_count ?? 0;
      if (count !== expected) return `${name} sees ${count} of ${expected} providers of ${model}`;
    }
    const answer = await ask({ baseUrl: url, apiKey }, { model: LIGHT_MODEL, prompt: { words: 1 }, signal });
    return answer.kind === 'verified' ? null : `${name} does not answer: ${JSON.stringify(answer)}`;
  } catch (error) {
    return `${name}: ${error}`;
  }
}
