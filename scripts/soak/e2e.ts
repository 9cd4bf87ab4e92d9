/**
 * `npm run soak -- e2e [requests per SDK] [seed]`: requests that clients seal to providers (end-to-end mode), in two parts.
 *
 * The first part checks exact charges through each SDK. The second part kills agents, leaves responses early and sends prompts that
 * providers refuse: each answer must verify or be an error. At the end the ledger must balance, and no file may contain a prompt.
 */
import { createVerifiedFetch, verdictOf } from '@inference/client';
import { type AllModelsNetwork, startAllModelsNetwork } from '../../test/support/all-models-network.js';
import { filesHolding } from '../../test/support/files-holding.js';
import { paidIn, runMix, SDK_NAMES, type Verified } from '../../test/support/sdk-requests/run.js';
import { longQuestionOf, tooLongPromptOf } from '../../test/support/sdk-requests/sdk-request.js';
import { SeededRandom } from '../../test/support/seeded-random.js';

/** Text in every prompt, for which files are searched. */
const CANARY = 'canary-93bfe0';
const CLIENTS = 4;
const REFUSAL_PAUSE_MS = 100;
const KILL_INTERVAL_MS = 3000;
/** Maximum kills per agent. The supervisor of the test network gives up after more restarts per minute. */
const MAX_KILLS = 6;

/** Runs `count` requests of each SDK, then as many with faults. Resolves to false on a violated invariant. */
export async function e2e(count: number, seed: number): Promise<boolean> {
  const all = await startAllModelsNetwork({ providers: 2, coordinatorEnv: { LOG_LEVEL: 'debug' } });
  const problems: string[] = [];
  try {
    for (const [index, sdk] of SDK_NAMES.entries()) {
      const customer = await all.customers.customer();
      const begin = performance.now();
      const { baseUrl } = all.network;
      const options = { sdk, baseUrl, apiKey: customer.apiKey, models: all.models, canary: CANARY, count, seed: seed + index * 100 };
      const outcome = await runMix(options);
      const { verified, leftCount, injectedCount, endpoints } = outcome;
      problems.push(...outcome.problems.map((problem) => `${sdk}: ${problem}`));
      problems.push(...(await all.customers.audit(customer, paidIn(verified), leftCount)));
      const seconds = ((performance.now() - begin) / 1000).toFixed(1);
      console.log(
        `${sdk}: ${count} requests in ${seconds} s, ${verified.length} responses verified, ${leftCount} streams left, ` +
          `${injectedCount} failures repeated, ${[...endpoints].sort().join(' ')}`,
      );
    }
    problems.push(...(await withFaults(all, count, seed)), ...(await all.customers.ledgerProblems()));
    problems.push(...filesHolding(all.network.dataDir, CANARY).map((file) => `the prompts are in ${file}`));
  } finally {
    await all.dispose();
  }
  for (const problem of problems.slice(0, 20)) console.error(`PROBLEM: ${problem}`);
  return problems.length === 0;
}

/** Sends chat requests while agents are killed in turn. Returns problems. */
async function withFaults({ network, customers, models }: AllModelsNetwork, count: number, seed: number): Promise<string[]> {
  const random = new SeededRandom(seed + 10_000);
  const customer = await customers.customer();
  const fetch = createVerifiedFetch({ baseURL: network.baseUrl, policy: { allowSimulated: true } });
  const verified: Verified[] = [];
  const problems: string[] = [];
  const ends = { verified: 0, refused: 0, failed: 0, kills: 0 };
  const prompts = { canary: CANARY };

  const send = async (): Promise<void> => {
    const [isLeft, isTooLong] = [random.happens(0.3), random.happens(0.05)];
    const content = isTooLong ? tooLongPromptOf(prompts) : longQuestionOf(prompts);
    const body = JSON.stringify({
      model: models.text,
      messages: [{ role: 'user', content }],
      max_tokens: 100,
      stream: random.happens(0.7),
    });
    const leaveAfter = isLeft ? random.below(4) : Number.POSITIVE_INFINITY;
    let response: Response;
    try {
      response = await fetch(`${network.baseUrl}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${customer.apiKey}` },
        body,
      });
      let chunkCount = 0;
      for await (const _ of response.body as unknown as AsyncIterable<Uint8Array>) if (++chunkCount > leaveAfter) break;
    } catch {
      ends.failed++;
      return;
    }
    const verdict = verdictOf(response);
    if (verdict?.state === 'verified') {
      verified.push(verdict);
      ends.verified++;
    } else if (verdict?.state === 'refused') {
      ends.refused++;
      // Without the pause, all remaining requests would fail during one restart of an agent.
      await new Promise((resolve) => setTimeout(resolve, REFUSAL_PAUSE_MS));
    } else problems.push(`a response ends as ${verdict?.state}`);
  };

  const total = Math.max(CLIENTS, count);
  let sent = 0;
  let isOver = false;
  const clients = Array.from({ length: CLIENTS }, async () => {
    while (sent++ < total) await send();
  });
  const finished = Promise.all(clients).then(() => {
    isOver = true;
  });
  while (!isOver && ends.kills < MAX_KILLS) {
    network.providers[ends.kills % network.providers.length]?.current.kill('SIGKILL');
    ends.kills++;
    await Promise.race([finished, new Promise((resolve) => setTimeout(resolve, KILL_INTERVAL_MS))]);
  }
  await finished;
  problems.push(...(await customers.audit(customer, paidIn(verified), ends.refused + ends.failed)));
  console.log('with kills, cancels and refusals:', ends);
  return problems;
}
