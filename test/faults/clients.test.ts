/**
 * Clients that send slowly or never, read slowly or not at all, and disconnect at every moment: each costs at most its own output,
 * holds no memory or machine, and leaves other clients unaffected.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type BackgroundTraffic, expectUnaffected, startTraffic } from '../support/background-traffic.js';
import { type Customer, DEPOSIT } from '../support/customers.js';
import { type FaultNetwork, startFaultNetwork } from '../support/faults/network.js';
import { SHORT } from '../support/faults/timings.js';
import { LightAgent } from '../support/light/agent.js';
import { type LightAgents, startLightAgents } from '../support/light/agents.js';
import { textOf } from '../support/light/script.js';
import { growthDuring } from '../support/memory.js';
import { SlowClient } from '../support/slow-client.js';
import { type Ask, ENDPOINTS } from '../support/verified-client.js';

let faults: FaultNetwork;
let honest: LightAgents;
let traffic: BackgroundTraffic;
/** Agent that serves the misbehaving clients. */
let agent: LightAgent;
/** Agent that sends the whole response at once, and the signature late. */
let late: LightAgent;

beforeAll(async () => {
  faults = await startFaultNetwork({ timings: SHORT });
  const url = faults.network.baseUrl;
  honest = await startLightAgents({ url, size: 2, models: () => ['steady'] });
  agent = await LightAgent.join({ url, models: ['patient'], slots: 64 });
  late = await LightAgent.join({
    url,
    models: ['late'],
    slots: 64,
    onJob: async (job) => {
      job.accept();
      await job.sendResponse();
      await job.frames.finish();
      await pause(1000);
      job.complete();
    },
  });
  traffic = startTraffic({ access: await faults.customers.customer(), model: 'steady', clients: 2, pauseMs: 150 });
});
afterAll(async () => {
  await traffic?.stop();
  honest?.leave();
  agent?.leave();
  late?.leave();
  await faults?.dispose();
});
afterEach(async () => {
  await expect.poll(() => agent.runningJobs + late.runningJobs).toBe(0);
  await expectUnaffected(traffic, faults.customers);
});

const MiB = 1024 * 1024;
const slowly: Ask = { model: 'patient', prompt: { words: 20, everyMs: 200 } };

/** Nothing was paid, and nothing stays reserved. */
async function unpaid(customer: Customer): Promise<void> {
  expect(await faults.customers.audit(customer, [])).toEqual([]);
  expect((await faults.customers.money(customer)).balance).toBe(DEPOSIT);
}

/** Sends the whole request, and waits for the job. */
async function startJob(client: SlowClient): Promise<void> {
  const { jobs } = agent.counts;
  await client.send();
  await expect.poll(() => agent.counts.jobs).toBeGreaterThan(jobs);
}

describe('a client that leaves', () => {
  const before: [string, Ask, (client: SlowClient) => Promise<unknown>][] = [
    ['after its headers', slowly, async () => {}],
    ['in the middle of its body', slowly, (client) => client.send({ bytes: client.bodyLength >> 1 })],
    ['before the first content of a stream', { ...slowly, stream: true, prompt: { words: 4, everyMs: 1500 } }, startJob],
    ['while it waits for a whole answer', slowly, startJob],
    [
      'while a whole answer is being signed',
      { ...slowly, model: 'late', prompt: { words: 3 } },
      async (client) => (await client.send()) && pause(300),
    ],
  ];

  it('before it got anything pays nothing', async () => {
    for (const endpoint of ENDPOINTS.slice(0, 2)) {
      for (const [, ask, until] of before) {
        const customer = await faults.customers.customer();
        const client = new SlowClient(customer, { ...ask, endpoint });
        await until(client);
        client.leave();
        await client.closed;
        await unpaid(customer);
      }
    }
  });

  it('in the middle of a stream pays at most for what it got', async () => {
    await Promise.all(
      ENDPOINTS.map(async (endpoint) => {
        const customer = await faults.customers.customer();
        const client = await new SlowClient(customer, { ...slowly, endpoint, stream: true }).send();
        await client.readBytes(1000);
        client.leave();
        await client.closed;
        expect(await faults.customers.audit(customer, [], Number.POSITIVE_INFINITY)).toEqual([]);
        for (const entry of await faults.customers.usage(customer)) expect(entry.completion_tokens).toBeLessThanOrEqual(20);
      }),
    );
  });

  it('between the last word and the signature pays at most for the whole', async () => {
    const customer = await faults.customers.customer();
    const client = await new SlowClient(customer, { model: 'late', stream: true, prompt: { words: 6 } }).send();
    await client.readBytes(1000);
    client.leave();
    await client.closed;
    expect(await faults.customers.audit(customer, [], Number.POSITIVE_INFINITY)).toEqual([]);
  });
});

describe('a client that sends', () => {
  it('its body byte by byte is served as any other', async () => {
    const customer = await faults.customers.customer();
    const client = new SlowClient(customer, { model: 'patient', prompt: { words: 5 } });
    await client.send({ piece: 1, everyMs: 3 });
    const answer = await client.finish();
    if (answer.kind !== 'verified') throw new Error(`not served: ${JSON.stringify(answer)}`);
    expect(await faults.customers.audit(customer, [answer.receipt])).toEqual([]);
  });

  it('no body, or half of one, is told so in the end; a hundred of them hold next to nothing', async () => {
    const customer = await faults.customers.customer();
    const { jobs } = agent.counts;
    const grown = await growthDuring(faults.coordinatorPid(), async () => {
      const clients = Array.from({ length: 100 }, () => new SlowClient(customer, { ...slowly, more: { pad: 'x'.repeat(20_000) } }));
      await Promise.all(clients.map((client, index) => (index % 2 === 0 ? client.send({ bytes: 10_000 }) : null)));
      const statuses = await Promise.all(clients.map(async (client) => (await client.response).statusCode));
      expect(new Set(statuses)).toEqual(new Set([408]));
      for (const client of clients) client.leave();
    });
    expect(grown).toBeLessThan(60 * MiB);
    expect(agent.counts.jobs).toBe(jobs);
    await unpaid(customer);
  });

  it('half of its body and then hangs up asks for nothing', async () => {
    const customer = await faults.customers.customer();
    const client = new SlowClient(customer, slowly);
    await client.connected;
    await client.send({ bytes: 40 });
    client.request.socket?.end();
    await client.response.catch(() => null);
    client.leave();
    await unpaid(customer);
  });
});

describe('a client that reads', () => {
  // Few, long words, because the coordinator does not pay for an implausible number of tokens per second.
  const long = { words: 600, length: 10_000 };

  it('slowly gets every byte, signed', async () => {
    const customer = await faults.customers.customer();
    const client = await new SlowClient(customer, { model: 'patient', stream: true, prompt: long }).send();
    const answer = await client.finish({ piece: 128 * 1024, everyMs: 15 });
    if (answer.kind !== 'verified') throw new Error(`not verified: ${answer.kind}`);
    expect(answer.text).toBe(textOf(long));
    expect(await faults.customers.audit(customer, [answer.receipt])).toEqual([]);
  });

  it('a byte a second is ended, has paid at most for what was taken, and held little memory', async () => {
    const customer = await faults.customers.customer();
    const { cancels } = agent.counts;
    const grown = await growthDuring(faults.coordinatorPid(), async () => {
      const clients = Array.from(
        { length: 8 },
        () => new SlowClient(customer, { model: 'patient', stream: true, prompt: { words: 8000, length: 1500 } }),
      );
      await Promise.all(clients.map((client) => client.send()));
      const reading = setInterval(() => {
        for (const client of clients) void client.response.then((response) => response.read(1));
      }, 1000);
      // The clients read too slowly to receive the error.
      await expect.poll(() => agent.counts.cancels - cancels, { timeout: 60_000 }).toBe(8);
      clearInterval(reading);
      for (const client of clients) client.leave();
    });
    // Each response has twelve megabytes.
    expect(grown).toBeLessThan(100 * MiB);
    expect(await faults.customers.audit(customer, [], Number.POSITIVE_INFINITY)).toEqual([]);
    for (const entry of await faults.customers.usage(customer)) expect(entry.completion_tokens).toBeLessThan(8000);
  });
});

it('an account is audited against its own deposit', async () => {
  const customer = await faults.customers.customer(1_000_000);
  expect(await faults.customers.audit(customer, [])).toEqual([]);
});
