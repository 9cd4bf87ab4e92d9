/**
 * Providers that refuse, lie, break the protocol, flood and never finish, next to honest providers with ordinary traffic.
 * Every client gets correct bytes or a clear error, and pays only for correct responses. Other traffic is unaffected.
 */
import { randomBytes } from 'node:crypto';
import { JOB_FAILURES, type JobFailure, type JobFailureCode, type Receipt } from '@inference/protocol';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type BackgroundTraffic, expectUnaffected, startTraffic } from '../support/background-traffic.js';
import { DEPOSIT } from '../support/customers.js';
import { type FaultNetwork, startFaultNetwork } from '../support/faults/network.js';
import { SHORT } from '../support/faults/timings.js';
import { type Behaviour, LightAgent } from '../support/light/agent.js';
import { type LightAgents, startLightAgents } from '../support/light/agents.js';
import { bytesOf, type CompletionChange, type LightJob } from '../support/light/job.js';
import { textOf } from '../support/light/script.js';
import { growthDuring } from '../support/memory.js';
import { type Answer, ask, ENDPOINTS, type Generating } from '../support/verified-client.js';

let faults: FaultNetwork;
let honest: LightAgents;
let traffic: BackgroundTraffic;
let models = 0;

beforeAll(async () => {
  faults = await startFaultNetwork({ timings: SHORT });
  const { baseUrl } = faults.network;
  honest = await startLightAgents({ url: baseUrl, size: 4, models: () => ['steady'] });
  traffic = startTraffic({ access: await faults.customers.customer(), model: 'steady', clients: 2, pauseMs: 75 });
});
afterAll(async () => {
  await traffic?.stop();
  honest?.leave();
  await faults?.dispose();
});
afterEach(async () => {
  for (const agent of joined.splice(0)) agent.leave();
  await expectUnaffected(traffic, faults.customers);
});

/** Agents of the current test. These stay connected, because a rejection may come after the client's answer. */
const joined: LightAgent[] = [];

const script = { words: 30 };

interface Case {
  readonly endpoint: Generating;
  readonly stream: boolean;
}
const CASES: readonly Case[] = ENDPOINTS.flatMap((endpoint) => [false, true].map((stream) => ({ endpoint, stream })));

interface Trial {
  readonly answer: Answer;
  readonly bad: LightAgent;
  readonly rescuer: LightAgent | null;
}

/**
 * Requests a model that only the bad agent serves. With `rescued`, an honest agent starts serving after the bad agent got the job.
 * Checks the charge.
 */
async function trial(onJob: Behaviour, { endpoint, stream }: Case, rescued: boolean, maxTokens = 64): Promise<Trial> {
  const model = `fault-${models++}`;
  const url = faults.network.baseUrl;
  const rescuer = rescued ? await LightAgent.join({ url, models: ['idle'] }) : null;
  if (rescuer !== null) joined.push(rescuer);
  const bad = await LightAgent.join({
    url,
    models: [model],
    onJob: async (job) => {
      await rescuer?.serve([model]);
      await onJob(job);
    },
  });
  joined.push(bad);
  const customer = await faults.customers.customer();
  const answer = await ask(customer, { model, endpoint, stream, prompt: script, maxTokens });
  const receipts: Receipt[] = answer.kind === 'verified' ? [answer.receipt] : [];
  expect(await faults.customers.audit(customer, receipts)).toEqual([]);
  if (answer.kind === 'verified') expect(answer.text).toBe(textOf(script));
  else expect(await faults.customers.money(customer)).toEqual({ balance: DEPOSIT, reserved: 0 });
  return { answer, bad, rescuer };
}

/** Runs the trials of a fault in every format, concurrently. */
function everyWay(onJob: Behaviour, rescued: boolean): Promise<Trial[]> {
  return Promise.all(CASES.map((one) => trial(onJob, one, rescued)));
}

/** Resolves when the coordinator cancels the job, or the agent disconnects. */
function stopped(job: LightJob): Promise<void> {
  return new Promise((resolve) => {
    if (job.closing.aborted) resolve();
    else job.closing.addEventListener('abort', () => resolve());
  });
}

function codeOf(answer: Answer): string {
  return answer.kind === 'verified' ? 'verified' : answer.code;
}

/** The error code of OpenAI's formats, and the error type of the Messages format. */
const FAILED = ['provider_failed', 'api_error'];
/** 500 is for the Messages format, which has no 502. */
const BAD_GATEWAY: readonly number[] = [502, 500];
const TIMED_OUT = ['provider_timeout', 'timeout_error'];

describe('a provider that refuses', () => {
  const codes = Object.keys(JOB_FAILURES) as JobFailureCode[];
  // `ask` sends no images, so that `invalid_image` is a lie.
  const ofClients = codes.filter((code) => JOB_FAILURES[code].blame === 'client' && code !== 'invalid_image');
  const others = codes.filter((code) => JOB_FAILURES[code].blame !== 'client');

  it.each(ofClients)(
    'for the request (%s) is believed where nobody else serves the model, in the words of the coordinator',
    async (code) => {
      const facts: Partial<JobFailure> = code === 'context_length_exceeded' ? { limit: 131_072, actual: 140_000 } : { param: 'messages' };
      for (const { answer, bad } of await everyWay((job) => job.fail({ code, ...facts }), false)) {
        expect(answer).toMatchObject({ kind: 'refused', status: 400 });
        expect(bad.counts.jobs).toBe(1);
      }
    },
  );

  it('because of an image that the request does not contain is not believed', async () => {
    for (const { answer } of await everyWay((job) => job.fail({ code: 'invalid_image', param: 'messages' }), false)) {
      expect(answer.kind === 'refused' && BAD_GATEWAY.includes(answer.status)).toBe(true);
      expect(FAILED).toContain(codeOf(answer));
    }
  });

  it('for reasons of its own is replaced by another, whatever the reason', async () => {
    const trials = await Promise.all(
      others.map((code, index) => trial((job) => job.fail({ code }), CASES[index % CASES.length] as Case, true)),
    );
    expect(trials.map(({ answer }) => codeOf(answer))).toEqual(others.map(() => 'verified'));
    for (const { answer, rescuer } of trials) if (answer.kind === 'verified') expect(answer.providerId).toBe(rescuer?.providerId);
  });

  it('leaves a clear error when it is alone', async () => {
    for (const { answer } of await everyWay((job) => job.fail({ code: 'engine_failed' }), false)) {
      expect(answer.kind === 'refused' && BAD_GATEWAY.includes(answer.status)).toBe(true);
      expect(FAILED).toContain(codeOf(answer));
    }
  });
});

describe('a provider that lies', () => {
  const receipt = (change: (receipt: Receipt) => object): CompletionChange => ({
    receipt: (honestly) => ({ ...honestly, ...change(honestly) }) as Receipt,
  });
  const other = '0'.repeat(64);
  const lies: Record<string, CompletionChange> = {
    'the hash': { message: (message) => ({ ...message, response_sha256: other }) },
    'the hash in its receipt': receipt(() => ({ response_sha256: other })),
    'the usage, which does not add up': receipt(({ usage }) => ({ usage: { ...usage, total_tokens: 1 } })),
    'the usage, over the limit': receipt(() => ({ usage: { prompt_tokens: 1, completion_tokens: 65, total_tokens: 66 } })),
    'its hidden tokens': receipt(() => ({ hidden_tokens: 1000 })),
    'the prompt and thoughts, beyond what is possible': receipt(() => ({
      usage: { prompt_tokens: 9_000_000, completion_tokens: 64, total_tokens: 9_000_064 },
      hidden_tokens: 64,
    })),
    'the model': receipt(() => ({ model: 'steady' })),
    'the endpoint': receipt(({ endpoint }) => ({ endpoint: endpoint === '/v1/messages' ? '/v1/completions' : '/v1/messages' })),
    'the job': receipt(() => ({ job_id: '00000000-0000-4000-8000-000000000000' })),
    'the request': receipt(() => ({ request_sha256: other })),
    'who it is': receipt(() => ({ provider_id: 'p_0000000000000000', se_key_sha256: other })),
    'when it ended': receipt(({ started_at }) => ({ completed_at: started_at - 1 })),
    'that it was cancelled': receipt(() => ({ finish_reason: 'cancelled' })),
    'a signature of random bytes': { message: (message) => ({ ...message, signature: randomBytes(70).toString('base64') }) },
    'a signature that is no base64': { message: (message) => ({ ...message, signature: 'AAA' }) },
    'a receipt of random bytes': {
      message: (message) => ({
        ...message,
        receipt: { payload: randomBytes(200).toString('base64'), signature: message.receipt.signature },
      }),
    },
    'a receipt that is signed as a challenge': {
      message: (message) => ({ ...message, receipt: { ...message.receipt, signature: message.signature } }),
    },
  };

  it.each(Object.entries(lies))('about %s is not believed, is not paid, and gets no more work', async (_, lie) => {
    const one = CASES[models % CASES.length] as Case;
    const { answer, bad, rescuer } = await trial((job) => job.answer(lie), one, true);
    // A response withheld until verification can be retried on an honest agent.
    const codes = one.stream ? ['response_verification_failed', ...FAILED] : ['verified'];
    expect(answer.kind).toBe(one.stream ? 'broken' : 'verified');
    expect(codes).toContain(codeOf(answer));
    if (answer.kind === 'verified') expect(answer.providerId).toBe(rescuer?.providerId);
    await expect.poll(() => bad.rejection !== null || bad.standing?.routable === false).toBe(true);
  });

  it('is told apart in every format', async () => {
    for (const { answer } of await everyWay((job) => job.answer(lies['the model'] as CompletionChange), false)) {
      expect(['refused', 'broken']).toContain(answer.kind);
    }
  });
});

describe('a provider that breaks the protocol', () => {
  const say = bytesOf('data: {"never":"signed"}\n\n');

  it('before anything was delivered is replaced', async () => {
    const breaches: Behaviour[] = [
      // Sends bytes before accepting the job.
      (job) => job.push(say),
      // A frame that does not decrypt, because its last byte is changed.
      (job) => {
        job.accept();
        const frame = job.sealer.seal(say, false);
        frame[frame.length - 1] = (frame.at(-1) ?? 0) ^ 1;
        job.agent.sendBytes(frame);
      },
      // Sends the second frame without the first.
      (job) => {
        job.accept();
        job.sealer.seal(say, false);
        job.push(say);
      },
      // Sends a text message that is no JSON.
      (job) => job.agent.socket.send('no message'),
      // Sends a message over the protocol limit, and one over the library's limit.
      (job) => job.agent.send({ type: 'load', active_jobs: 0, pad: 'x'.repeat(300_000) }),
      (job) => job.agent.sendBytes(new Uint8Array(5 * 1024 * 1024)),
      // Sends a second hello.
      (job) => job.agent.send({ type: 'hello', versions: [1], agent: { name: 'light', version: '1' } }),
      // Closes the socket without a message.
      (job) => job.agent.socket.terminate(),
      // Stays silent, before and after accepting the job.
      (job) => stopped(job),
      (job) => {
        job.accept();
        return stopped(job);
      },
    ];
    const trials = await Promise.all(breaches.map((breach, index) => trial(breach, CASES[index % CASES.length] as Case, true)));
    expect(trials.map(({ answer }) => codeOf(answer))).toEqual(breaches.map(() => 'verified'));
  });

  it('in the middle of a stream ends it with an error', async () => {
    const breaches: [Behaviour, readonly string[]][] = [
      [(job) => job.agent.socket.terminate(), FAILED],
      [(job) => job.fail({ code: 'engine_failed' }), FAILED],
      [(job) => stopped(job), TIMED_OUT],
      [
        // Sends the same frame twice.
        (job) => {
          const frame = job.sealer.seal(say, false);
          job.agent.sendBytes(frame);
          job.agent.sendBytes(frame);
        },
        FAILED,
      ],
      // Reports completion without a final frame.
      [(job) => job.complete(), ['response_verification_failed', ...FAILED]],
    ];
    const begun =
      (then: Behaviour): Behaviour =>
      async (job) => {
        job.accept();
        await job.frames.write('data: {"object":"begun"}\n\n');
        await then(job);
      };
    const streams = CASES.filter(({ stream }) => stream);
    const trials = breaches.flatMap(([breach, codes]) =>
      streams.map(async (one) => ({ codes, ...(await trial(begun(breach), one, true)) })),
    );
    for (const { answer, codes } of await Promise.all(trials)) {
      expect(answer.kind).toBe('broken');
      expect(codes).toContain(codeOf(answer));
    }
  });

  it('by sending more after the end changes no answer and no bill', async () => {
    const afterTheEnd: Behaviour = async (job) => {
      await job.answer();
      job.complete();
      job.agent.sendBytes(job.sealer.seal(say, false));
      job.fail({ code: 'internal' });
    };
    const beforeTheSignature: Behaviour = async (job) => {
      job.accept();
      await job.sendResponse();
      await job.frames.finish();
      job.push(say);
      job.complete();
    };
    const [after, before] = await Promise.all([everyWay(afterTheEnd, false), everyWay(beforeTheSignature, false)]);
    expect(after.map(({ answer }) => answer.kind)).toEqual(CASES.map(() => 'verified'));
    for (const { answer } of before) expect(answer.kind).not.toBe('verified');
  });
});

const MiB = 1024 * 1024;

describe('a provider that floods', () => {
  /** Expects the agent to be disconnected and the coordinator's memory growth to stay below `max`. */
  async function flood(onJob: Behaviour, max: number, one: Case = { endpoint: '/v1/chat/completions', stream: true }): Promise<Trial> {
    let done: Trial | undefined;
    const grown = await growthDuring(faults.coordinatorPid(), async () => {
      done = await trial(onJob, one, false);
    });
    expect(grown).toBeLessThan(max);
    return done as Trial;
  }

  it('with frames beyond its credit is shut out after some of them', async () => {
    const part = new Uint8Array(64 * 1024).fill(0x2e);
    const { answer, bad } = await flood(async (job) => {
      job.accept();
      job.push(bytesOf('data: {'));
      for (let sent = 0; sent < 200 && job.agent.open; sent++) {
        job.push(part);
        await new Promise((resolve) => setImmediate(resolve));
      }
    }, 150 * MiB);
    expect(answer.kind).toBe('broken');
    await bad.gone;
    expect(bad.rejection?.code).toBe('misbehaved');
  });

  it('and never ends is ended at what its limit of tokens can come to', async () => {
    const part = `data: {"x":"${'.'.repeat(16_000)}"}\n\n`;
    let sent = 0;
    const { answer } = await flood(async (job) => {
      job.accept();
      while (!job.closing.aborted && job.agent.open) {
        await job.frames.write(part);
        sent += part.length;
      }
    }, 200 * MiB);
    expect(answer.kind).toBe('broken');
    expect(sent).toBeLessThan(64 * MiB);
  });

  const talk: [string, (agent: LightAgent) => void][] = [
    ['unknown messages', (agent) => agent.send({ type: 'gossip', pad: 'x'.repeat(1000) })],
    [
      'lists of models',
      (agent) => agent.send({ type: 'models', models: agent.offers(Array.from({ length: 64 }, (_, i) => `flood-${i}`)) }),
    ],
    ['reports of load', (agent) => agent.send({ type: 'load', active_jobs: 1, thermal: 'fair' })],
    ['words on jobs that it never had', (agent) => agent.send({ type: 'job_progress', job_id: '00000000-0000-4000-8000-000000000000' })],
    ['requests for enrolments', (agent) => agent.send({ type: 'enrolment_request' })],
    [
      'new keys',
      (agent) => agent.send({ type: 'key_update', key: agent.keys.enclave.keyStatement(agent.keys.sealing.publicKey, agent.attestation) }),
    ],
  ];
  it.each(talk)('with thousands of control messages a second is shut out: %s', async (_, message) => {
    const agent = await LightAgent.join({ url: faults.network.baseUrl, models: ['flooded'] });
    const grown = await growthDuring(faults.coordinatorPid(), async () => {
      for (let sent = 0; sent < 40_000 && agent.open; sent++) {
        message(agent);
        if (sent % 100 === 99) await new Promise((resolve) => setTimeout(resolve, 5));
      }
      await agent.gone;
    });
    expect(agent.rejection?.code).toBe('misbehaved');
    expect(grown).toBeLessThan(150 * MiB);
  });

  it('with pings, and reads none of the answers, is shut out', async () => {
    const agent = await LightAgent.join({ url: faults.network.baseUrl, models: ['flooded'] });
    const payload = Buffer.alloc(125, 1);
    const grown = await growthDuring(faults.coordinatorPid(), async () => {
      agent.socket.pause();
      for (let sent = 0; sent < 400_000 && agent.open; sent++) {
        agent.socket.ping(payload);
        if (sent % 500 === 499) await new Promise((resolve) => setTimeout(resolve, 2));
      }
      agent.socket.resume();
      await agent.gone;
    });
    expect(grown).toBeLessThan(100 * MiB);
  });
});

it('all of that did no harm to the others', () => {
  expect(traffic.failures).toEqual([]);
  expect(traffic.answered).toBeGreaterThan(50);
});
