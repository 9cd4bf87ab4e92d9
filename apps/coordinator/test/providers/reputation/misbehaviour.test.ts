import type { JobCompleted, Receipt, Register } from '@inference/protocol';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { EnclaveKey } from '../../../../../test/support/enclave-key.js';
import type { JobTimings } from '../../../src/inference/job-timings.js';
import { errorOf, type Harness, MODEL, startHarness, until } from '../../support/harness.js';
import type { ScriptedJob } from '../../support/scripted-provider.js';
import { SharedHarness } from '../../support/shared-harness.js';

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const shared = new SharedHarness();
/** The first provider that connects gets the first job. */
const sharedFirst = new SharedHarness({ random: () => 0 });
afterAll(() => Promise.all([shared.close(), sharedFirst.close()]));

let harness: Harness;
afterEach(() => harness.close());

interface Lie {
  readonly receipt?: (receipt: Receipt) => Receipt;
  readonly message?: (message: JobCompleted, job: ScriptedJob) => JobCompleted;
}

const otherKey = new EnclaveKey();
const lies: Record<string, Lie> = {
  response_hash: { message: (message) => ({ ...message, response_sha256: '0'.repeat(64) }) },
  response_signature: { message: (message) => ({ ...message, signature: otherKey.signResponse(message.response_sha256) }) },
  receipt_statement: {
    message: (message, job) => ({ ...message, receipt: otherKey.statement('receipt', job.receipt(message.response_sha256)) }),
  },
  'receipt.job_id': { receipt: (receipt) => ({ ...receipt, job_id: '00000000-0000-4000-8000-000000000000' as Receipt['job_id'] }) },
  'receipt.provider_id': { receipt: (receipt) => ({ ...receipt, provider_id: '0'.repeat(32) as Receipt['provider_id'] }) },
  'receipt.se_key_sha256': { receipt: (receipt) => ({ ...receipt, se_key_sha256: '0'.repeat(64) }) },
  'receipt.model': { receipt: (receipt) => ({ ...receipt, model: 'another' }) },
  'receipt.request_sha256': { receipt: (receipt) => ({ ...receipt, request_sha256: '0'.repeat(64) }) },
  'receipt.overrides': { receipt: (receipt) => ({ ...receipt, overrides: {} }) },
  'receipt.response_sha256': { receipt: (receipt) => ({ ...receipt, response_sha256: '0'.repeat(64) }) },
  'receipt.client_nonce': { receipt: (receipt) => ({ ...receipt, client_nonce: 'A'.repeat(43) }) },
  'receipt.usage.total_tokens': { receipt: (receipt) => ({ ...receipt, usage: { ...receipt.usage, total_tokens: 1 } }) },
  'receipt.usage.completion_tokens': {
    receipt: (receipt) => ({ ...receipt, usage: { prompt_tokens: 0, completion_tokens: 8193, total_tokens: 8193 } }),
  },
  'receipt.hidden_tokens': { receipt: (receipt) => ({ ...receipt, hidden_tokens: 99 }) },
  'receipt.started_at': { receipt: (receipt) => ({ ...receipt, started_at: receipt.started_at - 600_000 }) },
  'receipt.completed_at': { receipt: (receipt) => ({ ...receipt, completed_at: receipt.completed_at + 600_000 }) },
};

function liar(lie: Lie): (job: ScriptedJob) => void {
  return (job) =>
    job.answerHonestly(undefined, {
      ...(lie.receipt === undefined ? {} : { receipt: lie.receipt }),
      message: (message) => (lie.message === undefined ? message : lie.message(message, job)),
    });
}

describe('an answer that does not verify', () => {
  for (const [problem, lie] of Object.entries(lies)) {
    it(`costs the client nothing and the provider its place: ${problem}`, async () => {
      harness = await shared.take();
      const provider = await harness.provider({ onJob: liar(lie) });
      const response = await harness.chat();
      expect([response.status, (await errorOf(response)).code]).toEqual([502, 'response_verification_failed']);
      expect(response.headers.get('x-se-signature')).toBeNull();
      const jobId = [...provider.jobs.keys()][0];
      const line = harness.log.map((text) => JSON.parse(text)).find((entry) => entry.job === jobId);
      expect(line).toMatchObject({ level: 50, status: 'bad_signature', problem, provider: provider.providerId });
      // No further job, neither now nor on a new connection of the same key.
      expect((await harness.chat()).status).toBe(503);
      await harness.provider({ enclave: provider.enclave });
      expect((await harness.chat()).status).toBe(503);
      expect(provider.jobs.size).toBe(1);
      const admin = (await (await harness.get('/admin/v1/providers', harness.adminKey)).json()) as {
        providers: { status: string; reason: string }[];
      };
      expect(admin.providers[0]).toMatchObject({ status: 'quarantined', reason: problem });
    });
  }

  it('is not assumed after the clock was set back meanwhile', async () => {
    let ahead = 0;
    harness = await startHarness({ now: () => Date.now() + ahead, providerTimings: { silenceMs: 1e9, challengeIntervalMs: 1e9 } });
    const provider = await harness.provider({
      onJob: (job) => {
        ahead = -600_000;
        job.answerHonestly();
      },
    });
    expect((await harness.chat()).status).toBe(200);
    expect(harness.app.providers.reputations.summaryOf(provider.providerId).state).toBe('well');
  });

  it('can be reinstated by the operator only', async () => {
    harness = await shared.take();
    let lying = true;
    const provider = await harness.provider({ onJob: (job) => (lying ? liar(lies.response_hash as Lie)(job) : job.answerHonestly()) });
    expect((await harness.chat()).status).toBe(502);
    lying = false;
    const reinstate = (key: string): Promise<Response> =>
      fetch(`${harness.url}/admin/v1/providers/${provider.providerId}/reinstate`, { method: 'POST', headers: { 'x-api-key': key } });
    expect((await reinstate(harness.apiKey)).status).toBe(403);
    expect((await reinstate(harness.adminKey)).status).toBe(200);
    expect((await harness.chat()).status).toBe(200);
  });

  it('ends a stream with an error, without signature and without terminator', async () => {
    harness = await shared.take();
    await harness.provider({ onJob: liar(lies.response_signature as Lie) });
    const response = await harness.chat({ stream: true });
    const text = await response.text();
    expect(response.status).toBe(200);
    expect(text).toContain('response_verification_failed');
    expect(text).not.toContain('se_signature');
    expect(text).not.toContain('[DONE]');
  });

  it('is one that stops before its final frame', async () => {
    harness = await shared.take();
    await harness.provider({
      onJob: (job) => {
        job.accept();
        for (const part of job.render(['cut'])) job.push(part);
        job.complete();
      },
    });
    expect((await harness.chat()).status).toBe(502);
    expect(harness.log.join()).toContain('incomplete_response');
  });
});

describe('a provider that breaks the protocol of a job', () => {
  const breaches: Record<string, (job: ScriptedJob) => void> = {
    'altered frame': (job) => {
      job.accept();
      const frame = job.seal(Buffer.from('hello'));
      frame[30] = (frame[30] ?? 0) ^ 1;
      job.provider.socket.send(frame);
    },
    'frame out of order': (job) => {
      job.accept();
      job.seal(Buffer.from('lost'));
      job.push(Buffer.from('second'));
    },
    'frame sent twice': (job) => {
      job.accept();
      const frame = job.seal(Buffer.from('again'));
      job.provider.socket.send(frame);
      job.provider.socket.send(frame);
    },
    'frame before acceptance': (job) => job.push(Buffer.from('early')),
    'more than its credit': (job) => {
      job.accept();
      for (let i = 0; i < 3; i++) job.provider.socket.send(job.seal(Buffer.alloc(200_000)));
      job.provider.socket.send(job.seal(Buffer.alloc(400_000)));
    },
  };
  for (const [name, breach] of Object.entries(breaches)) {
    it(`loses its session, and another answers: ${name}`, async () => {
      harness = await sharedFirst.take();
      const bad = await harness.provider({ onJob: breach });
      const good = await harness.provider();
      const response = await harness.chat();
      expect(response.status).toBe(200);
      expect(response.headers.get('x-provider-id')).toBe(good.providerId);
      await bad.closed;
      expect(bad.rejection).toBe('misbehaved');
    });
  }
});

describe('a provider whose stream contains lines reserved for the coordinator, so that clients could not verify it', () => {
  const pieces: Record<string, readonly string[]> = {
    'a comment': ['data: {"id":"x"}\n\n: mine\n\ndata: [DONE]\n\n'],
    'a comment at the very beginning': [': mine\n\n'],
    'a comment cut in two': ['data: {"id":"x"}\n\n', ': mine\n\n'],
    'a signature of its own': ['data: {"id":"x"}\n\n', ': inference-signature {"se_signature":""}\n\n'],
    'a carriage return': ['data: {"id":"x"}\r\n\r\n'],
    'the terminator before the end': ['data: {"id":"x"}\n\ndata: [DO', 'NE]\n\n', 'data: {"id":"y"}\n\n'],
    'the terminator at the end': ['data: {"id":"x"}\n\n', 'data: [DONE]\n\n'],
    'an end inside an event': ['data: {"id":"x"}\n\n', 'data: {"id":"x"}\n'],
    'an end inside a line': ['data: {"id":"x"}\n\ndata: {"id'],
  };
  for (const [name, parts] of Object.entries(pieces)) {
    it(`loses its session, and its client pays nothing: ${name}`, async () => {
      harness = await shared.take();
      const bad = await harness.provider({
        onJob: (job) => {
          job.accept();
          for (const part of parts) job.push(Buffer.from(part), part === parts.at(-1));
          job.complete();
        },
      });
      const text = await (await harness.chat({ stream: true })).text();
      expect(text).toContain('"error"');
      expect(text).not.toContain('[DONE]');
      await bad.closed;
      expect(bad.rejection).toBe('misbehaved');
      const usage = (await (await harness.get('/v1/payments/usage')).json()) as { usage: unknown[] };
      expect(usage.usage).toEqual([]);
    });
  }
});

const FREE_TEXT = 'Please visit example.org';
const CHAT = ['/v1/chat/completions', { messages: [{ role: 'user', content: 'hi' }] }] as const;
const MESSAGES = ['/v1/messages', { max_tokens: 8, messages: [{ role: 'user', content: 'hi' }] }] as const;
const RESPONSES = ['/v1/responses', { input: 'hi' }] as const;
const COMPLETIONS = ['/v1/completions', { prompt: 'hi' }] as const;
const EMBEDDINGS = ['/v1/embeddings', { input: 'hi' }] as const;
const COUNT = ['/v1/messages/count_tokens', { messages: [{ role: 'user', content: 'hi' }] }] as const;

/** Text of a client whose only provider answers with these bytes before the honest ones, and whether the client paid. */
async function askHostile([endpoint, members]: readonly [string, object], stream: boolean, bytes: string) {
  harness = await shared.take();
  const model_type = endpoint === '/v1/embeddings' ? 'embedding' : 'text';
  const provider = await harness.provider({
    register: (register) => ({ ...register, models: register.models.map((model) => ({ ...model, model_type })) }) as Register,
    onJob: (job) => {
      job.accept();
      job.push(Buffer.from(bytes));
      if (stream) for (const part of job.render(['some', ' text'])) job.push(part);
      job.push(new Uint8Array(), true);
      job.complete();
    },
  });
  const response = await harness.post(endpoint, { model: MODEL, ...(stream ? { stream } : {}), ...members });
  const text = await response.text();
  const { usage } = (await (await harness.get('/v1/payments/usage')).json()) as { usage: unknown[] };
  return { provider, status: response.status, text, isBilled: usage.length > 0 };
}

describe('a provider whose stream makes clients fail, or stop early', () => {
  const error = JSON.stringify({ error: { message: FREE_TEXT } });
  it.each([
    ['an error in the data', CHAT, `data: ${error}\n\n`],
    ['an error beside other members', CHAT, `data: {"id":"x","choices":[],${error.slice(1)}\n\n`],
    ['an error with an escaped name', CHAT, `data: ${error.replace('error', '\\u0065rror')}\n\n`],
    ['an error in a completion', COMPLETIONS, `data: ${error}\n\n`],
    ['an error of a response', RESPONSES, `event: response.created\ndata: {"type":"response.created","response":${error}}\n\n`],
    ['an error under another name', RESPONSES, `event: ping\ndata: {"type":"error","message":"${FREE_TEXT}"}\n\n`],
    ['a failed response without a name', RESPONSES, `data: {"type":"response.failed","response":{"status":"${FREE_TEXT}"}}\n\n`],
    [
      'the last event under another name',
      RESPONSES,
      `event: response.created\ndata: {"type":"response.completed","response":{"id":"${FREE_TEXT}"}}\n\n`,
    ],
    ['the last event of a message under another name', MESSAGES, `event: ping\ndata: {"type":"message_stop","x":"${FREE_TEXT}"}\n\n`],
    ['data without JSON', CHAT, `data: ${FREE_TEXT}\n\n`],
    ['a text as data', CHAT, `data: "${FREE_TEXT}"\n\n`],
    ['a NUL', CHAT, `data: {"a":"${FREE_TEXT}\u0000"}\n\n`],
    ['a line separator (U+2028)', CHAT, `data: {"a":"${FREE_TEXT}\u2028"}\n\n`],
  ] as const)('loses its session, and its client pays nothing and reads nothing of it: %s', async (_name, request, event) => {
    const { provider, text, isBilled } = await askHostile(request, true, event);
    expect(text).not.toContain(FREE_TEXT);
    expect(text).toContain('"error"');
    expect(isBilled).toBe(false);
    await provider.closed;
    expect(provider.rejection).toBe('misbehaved');
  });

  it.each([CHAT, COMPLETIONS, RESPONSES, MESSAGES])('may write these words as text: %s', async (endpoint, members) => {
    const words = ['"error":{"message":"no"}', ' "type":"message_stop"', '\ndata: {"error":1}\n\n', ' \u0000 \u2028'];
    harness = await shared.take();
    await harness.provider({ onJob: (job) => job.answerHonestly(words) });
    const text = await (await harness.post(endpoint, { model: MODEL, stream: true, ...members })).text();
    expect(text).toContain('message_stop');
    expect(text).toContain('se_signature');
  });
});

describe('a provider whose answer is none of its format', () => {
  it.each([
    ['an error', CHAT, { error: { message: FREE_TEXT } }],
    ['an error of a response', RESPONSES, { object: 'response', error: { message: FREE_TEXT } }],
    ['an error of Messages', MESSAGES, { type: 'error', error: { message: FREE_TEXT } }],
    ['an error in place of vectors', EMBEDDINGS, { error: { message: FREE_TEXT } }],
    ['an error in place of a token count', COUNT, { error: { message: FREE_TEXT } }],
    ['a text', CHAT, FREE_TEXT],
    ['a message in place of a chat completion', CHAT, { type: 'message', content: [{ type: 'text', text: FREE_TEXT }] }],
    ['a chat completion in place of a message', MESSAGES, { object: 'chat.completion', choices: [FREE_TEXT] }],
    ['a chat completion in place of a completion', COMPLETIONS, { object: 'chat.completion', choices: [FREE_TEXT] }],
  ] as const)('loses its session, and its client pays nothing and reads nothing of it: %s', async (_name, request, body) => {
    const { provider, status, text, isBilled } = await askHostile(request, false, JSON.stringify(body));
    // Anthropic's API has no status 502.
    expect([status, text]).toEqual([request[0].startsWith('/v1/messages') ? 500 : 502, expect.not.stringContaining(FREE_TEXT)]);
    expect(isBilled).toBe(false);
    await provider.closed;
    expect(provider.rejection).toBe('misbehaved');
  });

  it.each([
    ['without JSON', FREE_TEXT],
    ['cut off', '{"id":"1","object":"chat.completion","choices":['],
    ['empty', ''],
  ])('loses its session for a body %s', async (_name, body) => {
    const { provider, status, isBilled } = await askHostile(CHAT, false, body);
    expect([status, isBilled]).toEqual([502, false]);
    await provider.closed;
    expect(provider.rejection).toBe('misbehaved');
  });
});

describe.each([
  ['/v1/messages', { max_tokens: 8, messages: [{ role: 'user', content: 'hi' }] }, 'event: message_stop\n'],
  ['/v1/responses', { input: 'hi' }, 'event: response.completed\n'],
] as const)('the last event of a stream of %s', (endpoint, members, terminal) => {
  const ask = async (onJob: (job: ScriptedJob, parts: readonly Uint8Array[]) => void) => {
    harness = await shared.take();
    const provider = await harness.provider({
      onJob: (job) => {
        job.accept();
        onJob(job, job.render(['some', ' text']));
        job.push(new Uint8Array(), true);
        job.complete();
      },
    });
    const text = await (await harness.post(endpoint, { model: MODEL, stream: true, ...members })).text();
    const { usage } = (await (await harness.get('/v1/payments/usage')).json()) as { usage: unknown[] };
    return { provider, text, isBilled: usage.length > 0 };
  };

  it('may be in a frame with others', async () => {
    const { text, isBilled } = await ask((job, parts) => job.push(Buffer.concat(parts)));
    expect(text).toContain(terminal);
    expect(text).toContain('se_signature');
    expect(isBilled).toBe(true);
  });

  it('is followed by nothing', async () => {
    const { provider, text, isBilled } = await ask((job, parts) => {
      for (const part of parts) job.push(part);
      job.push(Buffer.from('event: ping\ndata: {"type":"ping"}\n\n'));
    });
    expect(text).toContain('event: error\n');
    expect(text).not.toContain('se_signature');
    expect(isBilled).toBe(false);
    await provider.closed;
    expect(provider.rejection).toBe('misbehaved');
  });

  it('is not left out', async () => {
    const { text, isBilled } = await ask((job, parts) => {
      for (const part of parts.slice(0, -1)) job.push(part);
    });
    expect(text).toContain('event: error\n');
    expect(text).not.toContain('se_signature');
    expect(isBilled).toBe(false);
    expect(harness.log.join()).toContain('incomplete_response');
  });
});

describe('before the first content', () => {
  // The short timeouts also apply to the provider that takes over, and must suffice on a slow machine.
  for (const [name, fail, brief] of [
    ['engine failed', (job) => job.fail({ code: 'engine_failed' })],
    ['busy', (job) => job.fail({ code: 'busy' })],
    ['draining', (job) => job.fail({ code: 'draining' })],
    ['connection lost', (job) => job.provider.close()],
    [
      'connection lost after acceptance',
      (job) => {
        job.accept();
        setTimeout(() => job.provider.close(), 20);
      },
    ],
    ['never accepts', () => {}, { acceptMs: 1500 }],
    ['never says anything', (job) => job.accept(), { firstContentMs: 1500 }],
  ] as const satisfies [name: string, fail: (job: ScriptedJob) => void, brief?: Partial<JobTimings>][]) {
    it(`another provider takes over, streamed or not: ${name}`, async () => {
      harness = await startHarness({ random: () => 0, jobTimings: { ...brief, commitMs: 60_000 } });
      for (const stream of [false, true]) {
        const bad = await harness.provider({ onJob: fail });
        const good = await harness.provider();
        const response = await harness.chat({ stream });
        const text = await response.text();
        expect(response.status).toBe(200);
        expect(response.headers.get('x-provider-id')).toBe(good.providerId);
        expect(text).toContain('here');
        expect(bad.jobs.size).toBe(1);
        bad.close();
        good.close();
        await until(async () => ((await (await harness.get('/v1/models')).json()) as { data: unknown[] }).data.length === 0);
      }
    });
  }

  it('a provider that reports progress is waited for, streamed or not, but not forever', async () => {
    harness = await startHarness({
      jobTimings: { firstContentMs: 900, betweenFramesMs: 900, maxWorkWithoutFrameMs: 4500, commitMs: 60_000 },
    });
    const atWork = (job: ScriptedJob): NodeJS.Timeout =>
      setInterval(() => job.provider.send({ type: 'job_progress', job_id: job.context.job_id }), 20);
    const slow = await harness.provider({
      onJob: async (job) => {
        job.accept();
        const signs = atWork(job);
        const [first, ...rest] = job.render(['late', ' but whole']);
        await sleep(1500);
        await job.pushWithinCredit(first as Uint8Array);
        await sleep(1500);
        clearInterval(signs);
        for (const bytes of rest) await job.pushWithinCredit(bytes);
        job.push(new Uint8Array(), true);
        job.complete();
      },
    });
    for (const stream of [false, true]) {
      const response = await harness.chat({ stream });
      expect(response.status).toBe(200);
      expect(await response.text()).toContain('late');
    }
    slow.close();
    await until(async () => ((await (await harness.get('/v1/models')).json()) as { data: unknown[] }).data.length === 0);
    const busyForEver: NodeJS.Timeout[] = [];
    const never = await harness.provider({
      onJob: (job) => {
        job.accept();
        busyForEver.push(atWork(job));
      },
    });
    expect((await harness.chat()).status).toBe(504);
    busyForEver.forEach(clearInterval);
    never.close();
  });

  it('gives up after three, with the status of the last failure', async () => {
    harness = await shared.take();
    const all = await Promise.all([1, 2, 3, 4].map(() => harness.provider({ onJob: (job) => job.fail({ code: 'internal' }) })));
    const response = await harness.chat({ stream: true });
    expect([response.status, (await errorOf(response)).code]).toEqual([502, 'provider_failed']);
    expect(all.reduce((sum, provider) => sum + provider.jobs.size, 0)).toBe(3);
  });

  it('a faulty request is refused when a second provider refuses it too', async () => {
    harness = await shared.take();
    const both = [1, 2].map(() =>
      harness.provider({ onJob: (job) => job.fail({ code: 'context_length_exceeded', limit: 4096, actual: 5000, param: 'messages' }) }),
    );
    const providers = await Promise.all(both);
    const response = await harness.chat();
    expect(response.status).toBe(400);
    expect(await errorOf(response)).toMatchObject({ code: 'context_length_exceeded', param: 'messages' });
    expect(providers.reduce((sum, provider) => sum + provider.jobs.size, 0)).toBe(2);
  });
});

describe('after the first content', () => {
  it('a failure is an error inside the stream, even in the middle of an event', async () => {
    harness = await shared.take();
    const provider = await harness.provider({
      onJob: (job) => {
        job.accept();
        job.push(Buffer.from('data: {"half":'));
        setTimeout(() => job.fail({ code: 'engine_failed' }), 20);
      },
    });
    await harness.provider({ models: ['other'] });
    const response = await harness.chat({ stream: true });
    const text = await response.text();
    expect(response.headers.get('x-provider-id')).toBe(provider.providerId);
    expect(text.startsWith('data: {"half":\n\ndata: {"error"')).toBe(true);
    expect(text).not.toContain('[DONE]');
  });

  for (const [name, parts] of Object.entries({
    'a comment': ['data: {}\n\n: of its own\n\n'],
    'a comment whose beginning came before': ['data: {}\n\n', ': of its own\n\n'],
    'a carriage return': ['data: {}\r\n\r\n'],
  })) {
    it(`${name} in a stream, which clients would not verify, ends it with an error and costs nothing`, async () => {
      harness = await shared.take();
      const provider = await harness.provider({
        onJob: (job) => {
          job.accept();
          for (const part of parts) job.push(Buffer.from(part));
          job.push(new Uint8Array(), true);
          job.complete();
        },
      });
      const before = await harness.money();
      const text = await (await harness.chat({ stream: true })).text();
      expect(text).toContain('provider_failed');
      expect(text).not.toContain('se_signature');
      expect(text).not.toContain('of its own');
      expect(await harness.money()).toEqual(before);
      await provider.closed;
      expect(provider.rejection).toBe('misbehaved');
    });
  }

  it('silence is a timeout, and the job is cancelled', async () => {
    harness = await startHarness({ jobTimings: { betweenFramesMs: 100 } });
    const provider = await harness.provider({
      onJob: (job) => {
        job.accept();
        job.push(Buffer.from('data: {}\n\n'));
      },
    });
    const text = await (await harness.chat({ stream: true })).text();
    expect(text).toContain('provider_timeout');
    await until(() => [...provider.jobs.values()].every((job) => job.cancelled.aborted));
  });
});
