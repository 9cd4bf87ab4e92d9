import { once } from 'node:events';
import { connect } from 'node:net';
import {
  type AttestationFeed,
  type JsonValue,
  MAX_FRAME_PAYLOAD_BYTES,
  MAX_TEXT_FRAME_BYTES,
  type Register,
  type SignedStatement,
} from '@inference/protocol';
import { generateSealingKeyPair, keyIdOf } from '@inference/protocol/crypto';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { WebSocket } from 'ws';
import { EnclaveKey } from '../../../../../test/support/enclave-key.js';
import type { ProviderSnapshot } from '../../../src/providers/provider-snapshot.js';
import { SESSION_TIMINGS } from '../../../src/providers/session/session-options.js';
import { type Harness, MODEL, startHarness, until } from '../../support/harness.js';
import { type ProviderOptions, type ScriptedJob, ScriptedProvider } from '../../support/scripted-provider.js';
import { SharedHarness } from '../../support/shared-harness.js';

const shared = new SharedHarness();
afterAll(() => shared.close());

let harness: Harness;
afterEach(() => harness.close());

/** Connects with these options, and returns the code of the rejection. */
async function refusal(options: ProviderOptions): Promise<string | undefined> {
  const provider = new ScriptedProvider(harness.url, { models: [MODEL], ...options });
  await provider.closed;
  return provider.rejection;
}

const change = (value: Record<string, unknown>) => (statement: JsonValue) => ({ ...(statement as object), ...value }) as JsonValue;

describe('registration', () => {
  it('counts the first of several offers of a model', async () => {
    harness = await shared.take();
    await harness.provider();
    const types = ['text', 'embedding', 'image'] as const;
    const repeated = await harness.provider({
      serial: 'REPEATED',
      register: (register) => ({
        ...register,
        models: register.models.flatMap((offer) => types.map((type) => ({ ...offer, model_type: type }))),
      }),
    });
    const { providers } = (await (await harness.get('/v1/providers/attestation')).json()) as AttestationFeed;
    expect(providers.find(({ provider_id }) => provider_id === repeated.providerId)?.models).toEqual([MODEL]);
    expect((await harness.chat()).status).toBe(200);
    const embedding = await harness.post('/v1/embeddings', { model: MODEL, input: 'hi' });
    expect(embedding.status).toBe(400);
  });

  it('refuses a simulated enclave unless the operator allows it', async () => {
    harness = await startHarness({ config: { allowSimulatedEnclave: false } });
    expect(await refusal({})).toBe('simulated_enclave_refused');
    await harness.provider({ claimsEnclave: true });
    expect((await harness.chat()).headers.get('x-provider-secure-enclave')).toBe('true');
  });

  it('refuses statements that are not signed, fresh, bound and protected', async () => {
    harness = await shared.take();
    const other = new EnclaveKey();
    const resign = (member: 'attestation' | 'challenge' | 'key', kind: 'attestation' | 'challenge' | 'key') => (register: Register) => ({
      ...register,
      [member]: other.statement(kind, JSON.parse(Buffer.from((register[member] as SignedStatement).payload, 'base64').toString())),
    });
    expect(await refusal({ register: resign('attestation', 'attestation') })).toBe('attestation_refused');
    expect(await refusal({ register: resign('challenge', 'challenge') })).toBe('challenge_failed');
    expect(await refusal({ register: resign('key', 'key') })).toBe('key_refused');
    expect(await refusal({ attestation: (a) => ({ ...a, issued_at: Date.now() - 25 * 3_600_000 }) })).toBe('attestation_refused');
    expect(await refusal({ attestation: (a) => ({ ...a, issued_at: Date.now() + 600_000 }) })).toBe('attestation_refused');
    const pretender = {
      attestation: (a: Parameters<NonNullable<ProviderOptions['attestation']>>[0]) => ({
        ...a,
        posture: { ...a.posture, secure_enclave: true },
      }),
    };
    expect(await refusal(pretender)).toBe('attestation_refused');
    expect(await refusal({ claimsEnclave: true, posture: { sip_enabled: false } })).toBe('posture_insufficient');
    expect(await refusal({ claimsEnclave: true, posture: { secure_boot_enabled: false } })).toBe('posture_insufficient');
    expect(await refusal({ keyStatement: change({ not_after: Date.now() + 2 * 3_600_000 }) })).toBe('key_refused');
    expect(await refusal({ keyStatement: change({ not_before: Date.now() - 7_200_000, not_after: Date.now() - 1 }) })).toBe('key_refused');
    expect(await refusal({ keyStatement: change({ provider_id: '0'.repeat(32) }) })).toBe('key_refused');
    expect(await refusal({ keyStatement: change({ key_id: '0'.repeat(16) }) })).toBe('key_refused');
    expect(await refusal({ keyStatement: change({ attestation_sha256: '0'.repeat(64) }) })).toBe('key_refused');
  });

  it('accepts a challenge answer once, and only on its own connection', async () => {
    harness = await shared.take();
    const first = await harness.provider();
    const replayed = first.answer(first.firstNonce);
    expect(await refusal({ enclave: first.enclave, register: (register) => ({ ...register, challenge: replayed }) })).toBe(
      'challenge_failed',
    );
  });

  it('enforces the order of messages and a common version', async () => {
    harness = await shared.take();
    const speak = async (...messages: string[]): Promise<string | undefined> => {
      const socket = new WebSocket(`${harness.url.replace('http', 'ws')}/provider/v1/socket`);
      const received: { type: string; code?: string }[] = [];
      socket.on('message', (data) => received.push(JSON.parse(String(data))));
      socket.on('open', () => messages.map((message) => socket.send(message)));
      await new Promise((resolve) => socket.on('close', resolve));
      return received.find((message) => message.type === 'rejected')?.code;
    };
    const hello = JSON.stringify({ type: 'hello', versions: [1], agent: { name: 'x', version: '1' } });
    expect(await speak(JSON.stringify({ type: 'draining' }))).toBe('out_of_turn');
    expect(await speak(hello, hello)).toBe('out_of_turn');
    expect(await speak('{')).toBe('bad_message');
    expect(await speak(JSON.stringify({ type: 'hello', versions: 1 }))).toBe('bad_message');
    expect(await speak(JSON.stringify({ type: 'hello', versions: [99], agent: { name: 'x', version: '1' } }))).toBe('version_unsupported');
  });

  it('does not wait forever', async () => {
    harness = await startHarness({ providerTimings: { handshakeMs: 50 } });
    const socket = new WebSocket(`${harness.url.replace('http', 'ws')}/provider/v1/socket`);
    const code = await new Promise((resolve) => socket.on('close', (_code, reason) => resolve(String(reason))));
    expect(code).toBe('too_slow');
  });
});

describe('an open session', () => {
  it('that ends for an invalid message logs the field, and nothing of the message', async () => {
    harness = await shared.take();
    for (const [message, field] of [
      [{ type: 'availability', state: 'a secret' }, 'availability.state'],
      [{ type: 'load', secret: 1 }, 'load.active_jobs'],
    ] as const) {
      const provider = await harness.provider();
      const before = harness.log.length;
      provider.send(message);
      await provider.closed;
      const left = () => harness.log.slice(before).find((line) => line.includes('provider left'));
      await until(() => left() !== undefined);
      expect(JSON.parse(left() ?? '')).toMatchObject({ provider: provider.providerId, code: 'bad_message', field });
      expect(left()).not.toContain('secret');
    }
  });

  it('ignores and counts messages of unknown types', async () => {
    harness = await shared.take();
    const provider = await harness.provider();
    provider.send({ type: 'from_the_future', more: 1 });
    provider.send({ type: 'job_failed', job_id: '00000000-0000-4000-8000-000000000000', failure: { code: 'internal' } });
    expect((await harness.chat()).status).toBe(200);
    const admin = (await (await harness.get('/admin/v1/providers', harness.adminKey)).json()) as { providers: { counters: object }[] };
    expect(admin.providers[0]?.counters).toEqual({ unknown_messages: 1, stray_messages: 1, missed_challenges: 0, late_answers: 0 });
  });

  it('counts a job that is accepted more than once, and ends when that goes on', async () => {
    harness = await startHarness();
    let repetitions = 3;
    const provider = await harness.provider({
      onJob: async (job) => {
        for (let repeated = 0; repeated < repetitions; repeated++) job.accept();
        await job.answerHonestly();
      },
    });
    expect((await harness.chat()).status).toBe(200);
    const admin = (await (await harness.get('/admin/v1/providers', harness.adminKey)).json()) as { providers: { counters: object }[] };
    // `answerHonestly` accepts the job once more.
    expect(admin.providers[0]?.counters).toMatchObject({ stray_messages: 3 });
    repetitions = 5000;
    void harness.chat().catch(() => undefined);
    await provider.closed;
    expect(provider.rejection).toBe('misbehaved');
  });

  it('ends when a message is twice as large as allowed, and no other session ends', async () => {
    harness = await shared.take();
    const quiet = await harness.provider({ models: ['quiet'] });
    const [text, binary, second] = [await harness.provider(), await harness.provider(), await harness.provider()];
    text.socket.send('x'.repeat(2 * MAX_TEXT_FRAME_BYTES));
    binary.socket.send(Buffer.alloc(2 * MAX_FRAME_PAYLOAD_BYTES));
    second.send({ type: 'hello', versions: [1], agent: { name: 'x', version: '1' } });
    expect(await Promise.all([text.closed, binary.closed, second.closed])).toEqual([1009, 1009, 1008]);
    expect([text.rejection, binary.rejection, second.rejection]).toEqual(['too_large', 'too_large', 'out_of_turn']);
    expect(quiet.socket.readyState).toBe(WebSocket.OPEN);
    expect((await harness.chat({ model: 'quiet' })).status).toBe(200);
  });

  it('ends when its provider floods, in pings or empty frames as well, and no other session ends', async () => {
    harness = await startHarness({ jobTimings: { commitMs: 60_000 } });
    const quiet = await harness.provider({ models: ['quiet'] });
    const [words, pings, frames] = await Promise.all([
      harness.provider({ models: ['other'] }),
      harness.provider({ models: ['other'] }),
      harness.provider({ onJob: (job) => job.accept() }),
    ]);
    const asked = harness.chat();
    await until(() => frames.jobs.size === 1);
    const [job] = [...frames.jobs.values()];
    for (let sent = 0; sent < 6000; sent++) {
      words.send({ type: 'from_the_future' });
      pings.socket.ping();
      job?.push(new Uint8Array());
    }
    await Promise.all([words.closed, pings.closed, frames.closed]);
    expect([words.rejection, pings.rejection, frames.rejection]).toEqual(['misbehaved', 'misbehaved', 'misbehaved']);
    expect((await asked).status).toBe(502);
    expect(quiet.socket.readyState).toBe(WebSocket.OPEN);
  });

  it('takes the frames of a cancelled job that were under way, within the granted credit, and ends when more follow', async () => {
    harness = await startHarness();
    const provider = await harness.provider({ onJob: (job) => job.accept(), onCancel: () => {} });
    const leaving = new AbortController();
    const asked = harness.chat({}, { signal: leaving.signal }).catch(() => null);
    await until(() => provider.jobs.size === 1);
    leaving.abort();
    await asked;
    const [job] = [...provider.jobs.values()] as [ScriptedJob];
    await until(() => job.cancelled.aborted);
    const chunk = new Uint8Array(16 * 1024);
    while (job.credit >= chunk.length) job.push(chunk);
    // Answered after the frames have been read.
    provider.send({ type: 'from_the_future' });
    type Answer = { providers: { counters: { unknown_messages: number; stray_messages: number } }[] };
    const counters = async () => {
      const answer = await harness.get('/admin/v1/providers', harness.adminKey);
      return ((await answer.json()) as Answer).providers[0]?.counters;
    };
    await until(async () => (await counters())?.unknown_messages === 1);
    expect(await counters()).toMatchObject({ stray_messages: 0 });
    for (let sent = 0; sent < 2000; sent++) job.push(chunk);
    await provider.closed;
    expect(provider.rejection).toBe('misbehaved');
  });

  it('is replaced by a newer one of the same key, whose jobs the old end does not touch', async () => {
    harness = await shared.take();
    const old = await harness.provider();
    const fresh = await harness.provider({ enclave: old.enclave });
    await old.closed;
    expect(old.rejection).toBe('replaced');
    expect((await harness.chat()).status).toBe(200);
    expect([old.jobs.size, fresh.jobs.size]).toEqual([0, 1]);
  });

  it('follows model lists, draining and new sealing keys', async () => {
    harness = await shared.take();
    const provider = await harness.provider();
    provider.send({ type: 'models', models: provider.offers(['new/model']) });
    await until(async () => (await harness.get('/v1/models/new/model')).status === 200);
    expect((await harness.chat()).status).toBe(503);
    provider.sealingKey = generateSealingKeyPair();
    provider.send({ type: 'key_update', key: provider.keyStatement() });
    await until(() => harness.app.providers.snapshot(provider.providerId)?.key?.keyId === keyIdOf(provider.sealingKey.publicKey));
    expect((await harness.chat({ model: 'new/model' })).status).toBe(200);
    provider.send({ type: 'draining' });
    await until(async () => (await harness.chat({ model: 'new/model' })).status === 503);
    provider.send({ type: 'key_update', key: new EnclaveKey().statement('key', {}) });
    await provider.closed;
    expect(provider.rejection).toBe('key_refused');
  });

  it('takes no jobs after its sealing key has expired', async () => {
    let now = Date.now();
    harness = await startHarness({ now: () => now });
    await harness.provider({ keyStatement: change({ not_before: now, not_after: now + 300 }) });
    expect((await harness.chat()).status).toBe(200);
    now += 300;
    await until(async () => (await harness.chat()).status === 503);
  });
});

it("a connection that is no provider's is closed, though the other side leaves it open", async () => {
  harness = await shared.take();
  const client = connect({ port: Number(new URL(harness.url).port), host: '127.0.0.1', allowHalfOpen: true });
  client.on('error', () => {});
  let answer = '';
  client.on('data', (data) => {
    answer += data;
  });
  client.write('GET /elsewhere HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n');
  await until(() => answer.startsWith('HTTP/1.1 404 '));
  // Only a write to the closed connection detects the close.
  await until(() => {
    client.write('x');
    return client.destroyed;
  });
});

/** Head and body of the response to an upgrade with these header lines. */
async function refusedUpgrade(lines: string): Promise<{ readonly head: string; readonly body: string }> {
  const client = connect(Number(new URL(harness.url).port), '127.0.0.1');
  let answer = '';
  client.on('data', (data) => {
    answer += data;
  });
  const closed = once(client, 'close');
  client.write(`GET /provider/v1/socket HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n${lines}\r\n`);
  await closed;
  const [head = '', body = ''] = answer.split('\r\n\r\n');
  return { head, body };
}

it('an upgrade above the maximum number of connections gets an error in JSON', async () => {
  harness = await shared.take();
  const connections = vi.spyOn(harness.app.providers, 'connections', 'get').mockReturnValue(20_000);
  const lines = `sec-websocket-key: ${'A'.repeat(22)}==\r\nsec-websocket-version: 13\r\n`;
  const { head, body } = await refusedUpgrade(lines).finally(() => connections.mockRestore());
  expect(head).toMatch(/^HTTP\/1.1 503 Service Unavailable\r\n/);
  expect(head).toMatch(/\r\ncontent-type: application\/json/i);
  expect(head).toMatch(/\r\nx-request-id: \S+/);
  expect(head).toMatch(/\r\nretry-after: [1-9]/);
  expect(JSON.parse(body)).toMatchObject({ error: { message: 'Too many connections. Try again later.' } });
});

it.each([
  ['Sec-WebSocket-Key', 'sec-websocket-key: short\r\nsec-websocket-version: 13\r\n'],
  ['Sec-WebSocket-Version', `sec-websocket-key: ${'A'.repeat(22)}==\r\nsec-websocket-version: 7\r\n`],
])('an upgrade with a bad %s gets an error in JSON', async (header, lines) => {
  harness = await shared.take();
  const { head, body } = await refusedUpgrade(lines);
  expect(head).toMatch(/^HTTP\/1.1 400 Bad Request\r\n/);
  expect(head).toMatch(/\r\ncontent-type: application\/json/i);
  expect(head).toMatch(/\r\nx-request-id: \S+/);
  expect(head).toContain('\r\nsec-websocket-version: 13');
  const message = `The WebSocket handshake is not valid: Missing or invalid ${header} header.`;
  expect(JSON.parse(body)).toMatchObject({ error: { type: 'invalid_request_error', message } });
});

describe('liveness of a session', () => {
  /** A peer is dead after several unanswered pings. One that answers some of them has enough time. */
  const LIFE = { pingMs: 20, silenceMs: 800 };
  const pingsAt = (provider: ScriptedProvider): (() => number) => {
    let pings = 0;
    provider.socket.on('ping', () => pings++);
    return () => pings;
  };
  const snapshotOf = ({ providerId }: ScriptedProvider): ProviderSnapshot | null => harness.app.providers.snapshot(providerId);

  it('a dead peer is noticed within thirty seconds, though its socket is open', async () => {
    const { pingMs, silenceMs } = SESSION_TIMINGS;
    expect(pingMs * (Math.floor(silenceMs / pingMs) + 2)).toBeLessThanOrEqual(30_000);
    harness = await startHarness({ providerTimings: LIFE });
    const dead = await harness.provider();
    const alive = await harness.provider({ models: ['alive'] });
    dead.socket.pause();
    await until(() => !harness.app.providers.models.serves(MODEL));
    expect([dead.socket.readyState, alive.rejection]).toEqual([WebSocket.OPEN, undefined]);
    expect(snapshotOf(alive)).not.toBeNull();
  });

  it('any frame shows liveness, so a busy provider keeps its job; a silent one loses it', async () => {
    harness = await startHarness({ providerTimings: LIFE });
    const busy = await harness.provider({ onJob: (job) => job.accept() });
    // The provider answers no pings, but reports its load.
    busy.socket.pong = () => {};
    const pings = pingsAt(busy);
    const asked = harness.chat();
    await until(() => busy.jobs.size === 1);
    for (let report = 1; report <= 4; report++) {
      busy.send({ type: 'load', active_jobs: report });
      await until(() => snapshotOf(busy)?.statistics.reportedJobs === report);
      const before = pings();
      await until(() => pings() > before + 12);
    }
    expect(snapshotOf(busy)?.usedSlots).toBe(1);
    expect((await asked).status).toBe(502);
    expect(snapshotOf(busy)).toBeNull();
  });

  it('setting the clock makes no provider silent', async () => {
    let ahead = 0;
    harness = await startHarness({ now: () => Date.now() + ahead, providerTimings: LIFE });
    const provider = await harness.provider();
    const pings = pingsAt(provider);
    for (const set of [60_000, -60_000]) {
      ahead = set;
      const before = pings();
      await until(() => pings() > before + 1);
    }
    expect([snapshotOf(provider) !== null, provider.rejection]).toEqual([true, undefined]);
  });

  it('a newer session of the same key takes over jobs without output yet', async () => {
    harness = await shared.take();
    const old = await harness.provider({ onJob: (job) => job.accept() });
    const [stream, plain] = [harness.chat({ stream: true }), harness.chat()];
    await until(() => old.jobs.size === 2);
    const fresh = await harness.provider({ enclave: old.enclave });
    expect((await Promise.all([stream, plain])).map(({ status }) => status)).toEqual([200, 200]);
    expect(await (await stream).text()).toContain('se_signature');
    await old.closed;
    expect([old.rejection, fresh.jobs.size]).toEqual(['replaced', 2]);
    // Reconnecting is no fault.
    expect(harness.app.providers.reputations.summaryOf(old.providerId).recentFailures).toBe(0);
  });

  it('and a stream that had begun ends with an error', async () => {
    harness = await shared.take();
    const old = await harness.provider({ onJob: (job) => job.beginStream(['half']) });
    const response = await harness.chat({ stream: true });
    const fresh = await harness.provider({ enclave: old.enclave });
    const text = await response.text();
    expect(text).toContain('provider_failed');
    expect(text).not.toContain('se_signature');
    expect(fresh.begunCount).toBe(0);
  });
});

describe('periodic challenges', () => {
  const timings = { challengeIntervalMs: 40, challengeAnswerMs: 600 };
  const challenges = (provider: ScriptedProvider) => provider.received.filter(({ type }) => type === 'challenge');

  it('are answered again and again', async () => {
    harness = await startHarness({ providerTimings: timings });
    const provider = await harness.provider();
    await until(() => challenges(provider).length >= 3);
    expect((await harness.chat()).headers.get('x-provider-attested')).toBe('true');
  });

  it('end the session of a provider that misses three', async () => {
    harness = await startHarness({ providerTimings: timings });
    const provider = await harness.provider({ onChallenge: () => null });
    await until(async () => (await harness.chat()).headers.get('x-provider-attested') === 'false');
    await provider.closed;
    expect(provider.rejection).toBe('challenge_failed');
    expect(challenges(provider)).toHaveLength(3);
  });

  it('tolerate a late answer', async () => {
    harness = await startHarness({ providerTimings: timings });
    let late: string | null = null;
    const provider = await harness.provider({
      onChallenge: (nonce, self) => {
        if (late === null) {
          late = nonce;
          return null;
        }
        // The second challenge follows the deadline of the first.
        if (challenges(self).length === 2) self.send({ type: 'challenge_answer', challenge: self.answer(late) });
        return self.answer(nonce);
      },
    });
    await until(() => challenges(provider).length >= 4);
    expect([harness.app.providers.snapshot(provider.providerId)?.counters.lateAnswers, provider.rejection]).toEqual([1, undefined]);
  });

  for (const [name, onChallenge, code] of [
    ['replayed', (_nonce, self) => self.answer(self.firstNonce), 'challenge_failed'],
    [
      'for another session',
      (nonce, self) =>
        self.enclave.statement('challenge', { v: 1, nonce, session_id: 'x', posture: { ...self.posture }, issued_at: Date.now() }),
      'challenge_failed',
    ],
    [
      'signed by another key',
      (nonce, self) =>
        new EnclaveKey().statement('challenge', {
          v: 1,
          nonce,
          session_id: self.sessionId,
          posture: { ...self.posture },
          issued_at: Date.now(),
        }),
      'challenge_failed',
    ],
    ['without system integrity protection', (nonce, self) => self.answer(nonce, { sip_enabled: false }), 'posture_insufficient'],
    ['without secure boot', (nonce, self) => self.answer(nonce, { secure_boot_enabled: false }), 'posture_insufficient'],
  ] as [string, NonNullable<ProviderOptions['onChallenge']>, string][]) {
    it(`put out a provider at once whose answer is ${name}`, async () => {
      harness = await startHarness({ providerTimings: timings });
      const provider = await harness.provider({ onChallenge });
      await provider.closed;
      expect(provider.rejection).toBe(code);
      expect((await harness.chat()).status).toBe(503);
    });
  }
});
