/**
 * `npm run soak -- crowd [agents] [seconds]`: measures the cost of thousands of connected agents without models.
 *
 * Prints registration time, memory, CPU, latency, and the time until all agents reconnect after the coordinator was killed. Passes if
 * all of them reconnect, every answer verifies and the ledger balances.
 */

import { startTraffic } from '../../test/support/background-traffic.js';
import { startFaultNetwork } from '../../test/support/faults/network.js';
import { makeKeys } from '../../test/support/light/agent.js';
import { startLightAgents } from '../../test/support/light/agents.js';
import { processorSeconds, residentBytes } from '../../test/support/memory.js';
import { waitUntilGone } from '../../test/support/processes.js';
import { startProgress } from '../progress.js';

const MODEL_COUNT = 50;
const RECONNECT_TIMEOUT_MS = 120_000;

export async function crowd(size: number, trafficSeconds: number): Promise<boolean> {
  const faults = await startFaultNetwork({ env: { LOG_LEVEL: 'warn' } });
  const mega = (bytes: number): string => `${(bytes / 1024 / 1024).toFixed(0)} MiB`;
  const seconds = (since: number): string => `${((performance.now() - since) / 1000).toFixed(1)} s`;
  const print = (what: string, value: string): void => console.log(`${what.padEnd(52)} ${value}`);
  let state = 'making keys';
  const progress = startProgress({ figures: () => state });
  let at = performance.now();
  const keys = Array.from({ length: size }, makeKeys);
  print(`keys of ${size} agents`, seconds(at));
  const [ownBefore, before] = [process.memoryUsage().rss, await residentBytes(faults.coordinatorPid())];
  const cpu = process.cpuUsage();
  const cpuOf = (): Promise<number> => processorSeconds(faults.coordinatorPid());
  let coordinatorCpu = await cpuOf();
  at = performance.now();
  state = 'agents register';
  const agents = await startLightAgents({
    url: faults.network.baseUrl,
    size,
    keys,
    models: (index) => ['crowd', `crowd-${index % MODEL_COUNT}`],
    staysConnected: true,
  });
  print('registered', seconds(at));
  const spent = process.cpuUsage(cpu);
  print('processor time of the agents', `${((spent.user + spent.system) / 1e6).toFixed(1)} s`);
  print('processor time of the coordinator', `${(await cpuOf()) - coordinatorCpu} s`);
  print('memory of the agents', mega(process.memoryUsage().rss - ownBefore));
  print('memory of the coordinator', mega((await residentBytes(faults.coordinatorPid())) - before));
  coordinatorCpu = await cpuOf();
  const access = await faults.customers.customer();
  const traffic = startTraffic({ access, model: 'crowd', clients: 8, pauseMs: 0 });
  const reporter = startProgress({
    until: performance.now() + trafficSeconds * 1000,
    figures: () => `${traffic.answered} answers verified, ${traffic.failures.length} failed`,
  });
  progress.stop();
  await new Promise((resolve) => setTimeout(resolve, trafficSeconds * 1000));
  await traffic.stop();
  reporter.stop();
  const times = [...traffic.times].sort((a, b) => a - b);
  const used = agents.agents.filter(({ counts }) => counts.jobs > 0).length;
  print('verified answers, one after the other at 8 clients', `${traffic.answered}, ${traffic.failures.length} failed`);
  print(
    'time of an answer, p50 and p99',
    `${times[times.length >> 1]?.toFixed(1)} ms, ${times[Math.floor(times.length * 0.99)]?.toFixed(1)} ms`,
  );
  print('processor time of the coordinator for them', `${(await cpuOf()) - coordinatorCpu} s`);
  print('agents that got work', `${used}`);
  const pid = faults.coordinatorPid();
  at = performance.now();
  process.kill(pid, 'SIGKILL');
  await waitUntilGone([pid]);
  const registrations = (): number => agents.agents.filter(({ counts }) => counts.registrations > 1).length;
  const returning = startProgress({ until: at + RECONNECT_TIMEOUT_MS, figures: () => `${registrations()} of ${size} agents are back` });
  while (registrations() < size && performance.now() - at < RECONNECT_TIMEOUT_MS) await new Promise((resolve) => setTimeout(resolve, 50));
  returning.stop();
  print('all back after the coordinator was killed', `${seconds(at)} (${registrations()} of ${size})`);
  const problems = [...(await faults.customers.audit(access, [], Number.POSITIVE_INFINITY)), ...(await faults.customers.ledgerProblems())];
  for (const problem of [...traffic.failures.slice(0, 5), ...problems]) console.error(`PROBLEM: ${problem}`);
  const hasPassed = traffic.failures.length === 0 && problems.length === 0 && registrations() === size;
  agents.leave();
  await faults.dispose();
  return hasPassed;
}
