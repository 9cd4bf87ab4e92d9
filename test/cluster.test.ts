/** `npm run cluster -- 2` as an operator runs the command: one coordinator is killed, clients and agents go on, Ctrl-C ends everything. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ClusterDemo } from '../scripts/network/cluster/cluster-network.js';
import { NpmStart, scriptCommand } from './support/npm-start.js';
import { processTable, waitUntilGone } from './support/processes.js';
import { temporaryDirectory } from './support/temporary-directory.js';

/** Maximum time in which agents connect to another coordinator, on an idle machine. */
const MAX_AWAY_MS = 5_000;
/** The same on a busy machine. */
const MAX_SLOW_AWAY_MS = 30_000;
const MAX_ROUNDS = 3;
/** Time limit of several rounds, and of a start on a busy machine. */
const ROUNDS_MS = 300_000;

let directory: string;
let cluster: NpmStart<ClusterDemo>;
let demo: ClusterDemo;

beforeAll(async () => {
  directory = temporaryDirectory('inference-cluster');
  cluster = start();
  demo = await cluster.ready();
}, ROUNDS_MS);
afterAll(() => cluster.end());

function start(): NpmStart<ClusterDemo> {
  return new NpmStart<ClusterDemo>(directory, {}, ['npm', 'run', 'cluster', '--', '2']);
}

async function chat(baseUrl: string): Promise<string> {
  const response = await fetch(`${baseUrl}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${demo.api_key}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      model: demo.text_model,
      temperature: 0,
      messages: [{ role: 'user', content: 'What is the capital of France?' }],
    }),
  });
  return `${response.status} ${await response.text()}`;
}

/** Providers of the text model, as a coordinator sees the whole network. */
async function providerCountAt(baseUrl: string): Promise<number> {
  const response = await fetch(`${baseUrl}/v1/models`, { headers: { authorization: `Bearer ${demo.api_key}` } });
  // Type of the public API.
  const { data } = (await response.json()) as { data: { id: string; metadata: { provider_count: number } }[] };
  return data.find(({ id }) => id === demo.text_model)?.metadata.provider_count ?? 0;
}

const placesOfAgents = (): (string | null)[] => cluster.demo().agents.map(({ coordinator }) => coordinator);

/** Chooses a coordinator with agents, and waits until the other coordinator knows both agents. */
async function coordinatorWithAgents() {
  const { coordinators } = cluster.demo();
  const chosen = coordinators.find(({ base_url: url }) => placesOfAgents().includes(url));
  const other = coordinators.find(({ pid }) => pid !== chosen?.pid);
  if (chosen === undefined || other === undefined) throw new Error('no agent is connected');
  await expect.poll(() => providerCountAt(other.base_url)).toBe(2);
  return { chosen, other };
}

/** `fault`: resolves to the time without agents, in milliseconds. Slow rounds are repeated, because the machine may be busy. */
async function expectShortAbsence(fault: () => Promise<number>): Promise<void> {
  let shortestMs = Number.POSITIVE_INFINITY;
  for (let round = 0; round < MAX_ROUNDS && shortestMs >= MAX_AWAY_MS; round++) {
    const awayMs = await fault();
    expect(awayMs).toBeLessThan(MAX_SLOW_AWAY_MS);
    shortestMs = Math.min(shortestMs, awayMs);
  }
  expect(shortestMs).toBeLessThan(MAX_AWAY_MS);
}

describe('npm run cluster', () => {
  it('serves through every coordinator and through the balancer', async () => {
    expect(demo).toEqual({
      base_url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      api_key: expect.stringMatching(/^service-.{32,}$/),
      admin_key: expect.stringMatching(/^service-.{32,}$/),
      text_model: expect.any(String),
      image_model: 'picto',
      vision_model: 'viso-demo',
      coordinators: [1, 2].map(() => ({ base_url: expect.any(String), pid: expect.any(Number) })),
      agents: demo.coordinators.map(({ base_url }) => ({ pid: expect.any(Number), coordinator: base_url })),
      nats: [1, 2, 3].map(() => ({ pid: expect.any(Number) })),
    });
    expect(statSync(join(directory, 'demo.json')).mode & 0o777).toBe(0o600);
    for (const { base_url: url } of [...demo.coordinators, demo]) expect(await chat(url)).toMatch(/^200 .*Paris/s);
  });

  it('goes on when one coordinator is killed, and starts it again', { timeout: ROUNDS_MS }, async () => {
    await expectShortAbsence(async () => {
      const { chosen: killed, other } = await coordinatorWithAgents();
      process.kill(killed.pid, 'SIGKILL');
      const killedAt = performance.now();
      await expect.poll(placesOfAgents, { interval: 20 }).toEqual([other.base_url, other.base_url]);
      const awayMs = performance.now() - killedAt;
      for (let request = 0; request < 4; request++) expect(await chat(demo.base_url)).toMatch(/^200 .*Paris/s);
      await expect.poll(() => cluster.demo().coordinators.map(({ pid }) => pid)).not.toContain(killed.pid);
      await expect.poll(() => chat(killed.base_url).catch(() => '')).toMatch(/^200 .*Paris/s);
      return awayMs;
    });
    expect(cluster.demo().nats).toEqual(demo.nats);
  });

  it('goes on when one coordinator freezes', { timeout: ROUNDS_MS }, async () => {
    await expectShortAbsence(async () => {
      const { chosen: frozen, other } = await coordinatorWithAgents();
      let awayMs = 0;
      process.kill(frozen.pid, 'SIGSTOP');
      try {
        const frozenAt = performance.now();
        await expect.poll(placesOfAgents, { interval: 20 }).toEqual([other.base_url, other.base_url]);
        await expect.poll(() => providerCountAt(other.base_url), { interval: 20 }).toBe(2);
        awayMs = performance.now() - frozenAt;
        expect(await chat(other.base_url)).toMatch(/^200 .*Paris/s);
      } finally {
        process.kill(frozen.pid, 'SIGCONT');
      }
      await expect.poll(() => chat(frozen.base_url).catch(() => '')).toMatch(/^200 .*Paris/s);
      return awayMs;
    });
  });

  it('ends everything on Ctrl-C, and starts again with the same data', { timeout: ROUNDS_MS }, async () => {
    const isOurs = ({ command }: { command: string }): boolean => command.includes(directory);
    const servers = processTable().filter(isOurs);
    expect(servers.filter(({ command }) => command.includes('nats-server'))).toHaveLength(3);
    expect(servers.filter(({ command }) => command.includes('postgres -D'))).toHaveLength(1);
    expect(await cluster.end('SIGINT')).toEqual({ code: 0, left: [] });
    await expect.poll(() => processTable().filter(isOurs)).toEqual([]);

    const { api_key: earlierKey } = demo;
    cluster = start();
    demo = await cluster.ready();
    expect(demo.api_key).toBe(earlierKey);
    expect(await chat(demo.base_url)).toMatch(/^200 .*Paris/s);
  });

  it('leaves nothing running when it is killed outright', async () => {
    const launcher = cluster.descendants().find(({ command }) => command.includes('scripts/cluster.ts'));
    const pids = cluster.descendants().map(({ pid }) => pid);
    process.kill(launcher?.pid ?? 0, 'SIGKILL');
    await cluster.exited;
    expect(await waitUntilGone(pids)).toEqual([]);
  });
});

it('scripts/cluster.ts says what is wrong with its arguments', async () => {
  const wrong: readonly (readonly [readonly string[], RegExp])[] = [
    [[], /usage/],
    [['17'], /from 1 to 16/],
    [['two'], /from 1 to 16/],
    [['keys', '2'], /usage/],
    [['keys', '2', '/dev/null/no', '--servers', 'somewhere'], /--servers must be/],
  ];
  const failed = wrong.map(([args]) => new NpmStart(directory, {}, [...scriptCommand('scripts/cluster.ts'), ...args]));
  expect(await Promise.all(failed.map(({ exited }) => exited))).toEqual(wrong.map(() => 1));
  for (const [index, [, message]] of wrong.entries()) expect(failed[index]?.output).toMatch(message);
});
