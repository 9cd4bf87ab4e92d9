/**
 * `npm run soak -- chaos [minutes] [seed]`: misbehaving agents and disconnecting clients, together with ordinary traffic.
 *
 * Passes if every answer with status 200 verifies, ordinary requests succeed, memory is bounded, and the ledger balances.
 */

import { startTraffic } from '../../test/support/background-traffic.js';
import { startFaultNetwork } from '../../test/support/faults/network.js';
import { SHORT } from '../../test/support/faults/timings.js';
import { type Behaviour, LightAgent } from '../../test/support/light/agent.js';
import { startLightAgents } from '../../test/support/light/agents.js';
import { bytesOf, type LightJob } from '../../test/support/light/job.js';
import { residentBytes } from '../../test/support/memory.js';
import { seededRandom } from '../../test/support/seeded-random.js';
import { SlowClient } from '../../test/support/slow-client.js';
import { ask, BadAnswer, ENDPOINTS } from '../../test/support/verified-client.js';
import { startProgress } from '../progress.js';

const BAD_AGENTS = 8;
const CLIENTS = 6;
const MAX_GROWTH_BYTES = 300 * 1024 * 1024;

const waitUntilCancelled = (job: LightJob): Promise<void> =>
  new Promise((resolve) => {
    if (job.closing.aborted) resolve();
    else job.closing.addEventListener('abort', () => resolve(), { once: true });
  });

const honest: Behaviour = (job) => job.answer();

const BEHAVIOURS: readonly Behaviour[] = [
  honest,
  (job) => job.fail({ code: 'busy' }),
  (job) => job.fail({ code: 'engine_failed' }),
  (job) => job.agent.socket.terminate(),
  (job) => waitUntilCancelled(job),
  (job) => job.answer({ receipt: (receipt) => ({ ...receipt, model: 'another' }) }),
  (job) => job.push(bytesOf('data: {}\n\n')),
  async (job) => {
    job.accept();
    await job.frames.write('data: {"object":"begun"}\n\n');
    await waitUntilCancelled(job);
  },
  async (job) => {
    job.accept();
    while (!job.closing.aborted && job.agent.open) await job.frames.write(`data: "${'.'.repeat(4000)}"\n\n`);
  },
];

export async function chaos(minutes: number, seed: number): Promise<boolean> {
  const random = seededRandom(seed);
  const pick = <Value>(values: readonly Value[]): Value => values[Math.floor(random() * values.length)] as Value;
  const faults = await startFaultNetwork({ timings: SHORT, env: { LOG_LEVEL: 'warn' } });
  const url = faults.network.baseUrl;
  const honestAgents = await startLightAgents({ url, size: 8, models: () => ['healthy', 'faulty'], staysConnected: true });
  const healthyCustomer = await faults.customers.customer();
  const traffic = startTraffic({ access: healthyCustomer, model: 'healthy', clients: 4 });
  const faultyCustomer = await faults.customers.customer();
  const until = Date.now() + minutes * 60_000;
  const counts = { verified: 0, refused: 0, broken: 0, left: 0, agents: 0, faults: 0 };
  const clientProblems: string[] = [];

  const misbehave: Behaviour = (job) => {
    const behaviour = pick(BEHAVIOURS);
    if (behaviour !== honest) counts.faults++;
    return behaviour(job);
  };
  const agents = async (): Promise<void> => {
    while (Date.now() < until) {
      const agent = await LightAgent.join({ url, models: ['faulty'], onJob: misbehave }).catch(() => null);
      if (agent === null) continue;
      counts.agents++;
      await Promise.race([agent.gone, new Promise((resolve) => setTimeout(resolve, 2000 + random() * 8000))]);
      agent.leave();
    }
  };
  const clients = async (): Promise<void> => {
    while (Date.now() < until) {
      const request = {
        model: 'faulty',
        endpoint: pick(ENDPOINTS),
        stream: random() < 0.5,
        maxTokens: 64,
        prompt: { words: 30, everyMs: 5 },
      };
      if (random() < 0.3) {
        const client = await new SlowClient(faultyCustomer, request).send();
        await Promise.race([
          client.readBytes(random() * 4000).catch(() => {}),
          new Promise((resolve) => setTimeout(resolve, random() * 300)),
        ]);
        client.leave();
        counts.left++;
      } else {
        try {
          counts[(await ask(faultyCustomer, request)).kind]++;
        } catch (error) {
          clientProblems.push(error instanceof BadAnswer ? error.message : `the connection broke: ${error}`);
        }
      }
    }
  };

  const progress = startProgress({
    until: performance.now() + until - Date.now(),
    figures: () =>
      `${counts.faults} faults, ${traffic.answered + counts.verified} answers verified, ${traffic.failures.length + clientProblems.length} problems`,
  });
  const before = await residentBytes(faults.coordinatorPid());
  let max = before;
  const memorySampler = setInterval(() => {
    residentBytes(faults.coordinatorPid()).then(
      (bytes) => {
        max = Math.max(max, bytes);
      },
      () => clientProblems.push('the memory of the coordinator could not be read'),
    );
  }, 1000);
  await Promise.all([...Array.from({ length: BAD_AGENTS }, agents), ...Array.from({ length: CLIENTS }, clients)]);
  clearInterval(memorySampler);
  progress.stop();
  await traffic.stop();
  honestAgents.leave();
  const money = [
    ...(await faults.customers.audit(faultyCustomer, [], Number.POSITIVE_INFINITY)),
    ...(await faults.customers.ledgerProblems()),
  ];
  console.log({ seed, minutes, ordinary: traffic.answered, failed: traffic.failures.length, ...counts });
  console.log(`memory of the coordinator: ${Math.round(before / 2 ** 20)} MiB, at most ${Math.round(max / 2 ** 20)} MiB`);
  const problems = [
    ...traffic.failures,
    ...clientProblems,
    ...money,
    ...(max - before > MAX_GROWTH_BYTES ? [`the coordinator grew by more than ${MAX_GROWTH_BYTES / 2 ** 20} MiB`] : []),
  ];
  for (const problem of problems.slice(0, 20)) console.error(`PROBLEM: ${problem}`);
  await faults.dispose();
  return problems.length === 0;
}
