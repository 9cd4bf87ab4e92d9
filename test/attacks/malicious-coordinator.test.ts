/**
 * End-to-end mode against a malicious coordinator: a real network, the real client and SDK, and an attacking HTTP proxy between them.
 * Each attack is refused with its own code, and the client never sends the prompt unencrypted.
 */
import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { createVerifiedFetch, type E2ERefusalCode, memoryStore, verdictOf } from '@inference/client';
import { type AttestationRecord, e2eKeepAlive, encodeE2eAbort, type SignedStatement, toBase64 } from '@inference/protocol';
import { generateSealingKeyPair, keyIdOf } from '@inference/protocol/crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ANSWER_LENGTH, AttackedNetwork, type ClientOptions, MODEL, type Outcome, PROMPT } from '../support/attacked-network.js';
import type { LightAgent } from '../support/light/agent.js';
import {
  type Answer,
  type Behaviour,
  framesOf,
  type HonestAnswer,
  type MaliciousCoordinator,
  withAnswer,
  withFrames,
  withKeyset,
  withRecords,
} from '../support/malicious-coordinator.js';

const FORGED = 'forged by the coordinator';
const HOUR_MS = 3_600_000;

let network: AttackedNetwork;
let coordinator: MaliciousCoordinator;

beforeAll(async () => {
  network = await AttackedNetwork.start();
  ({ coordinator } = network);
});
beforeEach(() => coordinator.become(() => null));
afterAll(() => network.close());

/** Requires a refusal with this code, and that nothing forged was shown. */
async function requireRefusal(code: E2ERefusalCode, stream: boolean, options?: ClientOptions): Promise<Outcome> {
  const outcome = await network.ask(stream, options);
  expect(outcome).toMatchObject({ isComplete: false, error: { code }, verdicts: [{ state: 'refused', refusal: { code } }] });
  expect(outcome.text).not.toContain(FORGED);
  if (!stream) expect(outcome.text).toBe('');
  network.requireNoPlaintext();
  return outcome;
}

function agentOf({ provider_id }: Pick<AttestationRecord, 'provider_id'>): LightAgent {
  const agent = network.agents.find(({ providerId }) => providerId === provider_id);
  if (agent === undefined) throw new Error(`no agent ${provider_id}`);
  return agent;
}

function challengeOf(record: AttestationRecord, change: Parameters<LightAgent['keys']['enclave']['challengeAnswer']>[2]) {
  const { last_challenge: challenge } = record;
  if (challenge === null) throw new Error('no challenge');
  const statement: SignedStatement = agentOf(record).keys.enclave.challengeAnswer(challenge.nonce, challenge.session_id, change);
  return { ...record, last_challenge: { ...challenge, statement } };
}

/** Answers the requests of one path in place of the network. */
function instead(path: string, answer: () => Partial<Answer>): Behaviour {
  return (exchange) => (exchange.path === path ? { status: 200, headers: {}, body: new Uint8Array(), ...answer() } : null);
}

/** Answers in place of every attestation record. */
function forRecords(answer: () => Partial<Answer>): Behaviour {
  return (exchange) =>
    exchange.path.startsWith('/v1/e2e/records/') ? { status: 200, headers: {}, body: new Uint8Array(), ...answer() } : null;
}

/** Changes the text of attestation records. */
function withRecordText(change: (text: string) => string): Behaviour {
  return async ({ path, honest }) => {
    if (!path.startsWith('/v1/e2e/records/')) return null;
    const answer = await honest();
    return { ...answer, body: Buffer.from(change(Buffer.from(answer.body).toString())) };
  };
}

const json = (value: unknown): Pick<Answer, 'headers' | 'body'> => ({
  headers: { 'content-type': 'application/json' },
  body: Buffer.from(JSON.stringify(value)),
});

test.each([false, true])('an honest relay is no attack (stream: %s)', async (stream) => {
  const outcome = await network.ask(stream);
  expect(outcome).toMatchObject({ isComplete: true, error: null, verdicts: [{ state: 'verified' }] });
  expect(outcome.text).toHaveLength(ANSWER_LENGTH);
  expect(coordinator.sealedRequests).toHaveLength(1);
  network.requireNoPlaintext();
});

describe('keys and evidence', () => {
  const attacker = generateSealingKeyPair().publicKey;
  const swapped = { x25519: toBase64(attacker), key_id: keyIdOf(attacker) };
  const posture = { secure_enclave: false, sip_enabled: false, secure_boot_enabled: true, authenticated_root_enabled: true };
  const path = '/v1/e2e/keyset';

  test.each<[string, E2ERefusalCode, () => Behaviour, (() => ClientOptions)?]>([
    [
      'a sealing key of the coordinator',
      'key_unbound',
      () => withKeyset((keyset) => ({ ...keyset, providers: keyset.providers.map((entry) => ({ ...entry, ...swapped })) })),
    ],
    [
      'a sealing key of the coordinator under the id of the real one',
      'key_unbound',
      () => withKeyset((keyset) => ({ ...keyset, providers: keyset.providers.map((entry) => ({ ...entry, x25519: swapped.x25519 })) })),
    ],
    [
      'an expired sealing key that the enclave once signed',
      'stale',
      () =>
        withRecords((record) => {
          const { keys, attestation } = agentOf(record);
          const times = { not_before: Date.now() - 2 * HOUR_MS, not_after: Date.now() - HOUR_MS };
          return { ...record, key_statement: keys.enclave.keyStatement(keys.sealing.publicKey, attestation, times) };
        }),
    ],
    ['an old challenge', 'stale', () => withRecords((record) => challengeOf(record, { issued_at: Date.now() - HOUR_MS }))],
    [
      'a sealing key that another provider signed',
      'key_unbound',
      () =>
        withRecords((record) => {
          const other = network.agents.find(({ providerId }) => providerId !== record.provider_id) as LightAgent;
          return { ...record, key_statement: other.keys.enclave.keyStatement(other.keys.sealing.publicKey, other.attestation) };
        }),
    ],
    [
      'a sealing key of tomorrow',
      'stale',
      () =>
        withRecords((record) => {
          const { keys, attestation } = agentOf(record);
          const times = { not_before: Date.now() + HOUR_MS, not_after: Date.now() + 2 * HOUR_MS };
          return { ...record, key_statement: keys.enclave.keyStatement(keys.sealing.publicKey, attestation, times) };
        }),
    ],
    ['a challenge of the future', 'stale', () => withRecords((record) => challengeOf(record, { issued_at: Date.now() + HOUR_MS }))],
    ['records that redirect', 'stale', () => forRecords(() => ({ status: 302, headers: { location: '/v1/models' } }))],
    ['records without end', 'coordinator_said', () => forRecords(() => ({ body: repeated(new Uint8Array(65_536), 1024) }))],
    ['records that are pages', 'downgraded', () => forRecords(() => ({ body: Buffer.from('<html>') }))],
    ['a record with half a character', 'targeted', () => withRecordText((text) => text.replace('"chip_name":"', '"chip_name":"\\ud800'))],
    [
      'a record that nests deeper than a stack',
      'targeted',
      () => withRecordText((text) => text.replace('{', `{"x":${'['.repeat(500_000)}${']'.repeat(500_000)},`)),
    ],
    [
      'the record of another provider',
      'targeted',
      () =>
        withKeyset(({ providers, ...keyset }) => {
          const rotated = [...providers.slice(1), ...providers.slice(0, 1)].map(({ record_sha256 }) => record_sha256);
          return { ...keyset, providers: providers.map((entry, index) => ({ ...entry, record_sha256: rotated[index] ?? '' })) };
        }),
    ],
    ['an old keyset', 'stale', () => withKeyset((keyset) => ({ ...keyset, issued_at: Date.now() - HOUR_MS }))],
    [
      'records that are withheld',
      'stale',
      () => (exchange) => (exchange.path.startsWith('/v1/e2e/records/') ? { status: 404, ...json({}) } : null),
    ],
    ['protections that are off', 'revoked', () => withRecords((record) => challengeOf(record, { posture }))],
    ['a revoked provider', 'revoked', () => withRecords((record) => ({ ...record, attested: false }))],
    ['no keyset', 'downgraded', () => instead(path, () => ({ status: 404 }))],
    ['an empty keyset', 'downgraded', () => withKeyset((keyset) => ({ ...keyset, providers: [] }))],
    ['a keyset of another version', 'downgraded', () => withKeyset((keyset) => ({ ...keyset, v: 2 as 1 }))],
    [
      'a keyset with half a character',
      'downgraded',
      () => withKeyset((keyset) => ({ ...keyset, providers: keyset.providers.map((entry) => ({ ...entry, models: [MODEL, '\ud800'] })) })),
    ],
    ['a page in place of the keyset', 'downgraded', () => instead(path, () => ({ body: Buffer.from('<html>') }))],
    ['a redirect to another keyset', 'downgraded', () => instead(path, () => ({ status: 307, headers: { location: '/v1/models' } }))],
    ['a keyset without end', 'coordinator_said', () => instead(path, () => ({ body: repeated(new Uint8Array(65_536), 1024) }))],
    [
      'a keyset without end, compressed',
      'coordinator_said',
      () => instead(path, () => ({ headers: { 'content-encoding': 'gzip' }, body: gzipSync(new Uint8Array(64 * 1024 * 1024)) })),
    ],
    ['a keyset that fails', 'coordinator_said', () => instead(path, () => ({ status: 503 }))],
    [
      'another keyset for this account',
      'targeted',
      () => withKeyset((keyset, { apiKey }) => (apiKey === null ? keyset : { ...keyset, providers: keyset.providers.slice(1) })),
    ],
    [
      'a keyset that shrinks',
      'targeted',
      () => withKeyset((keyset) => ({ ...keyset, providers: keyset.providers.slice(0, 1) })),
      () => ({ policy: { minCandidates: 2 } }),
    ],
    [
      'a provider named twice',
      'targeted',
      () => withKeyset((keyset) => ({ ...keyset, providers: keyset.providers.flatMap((entry) => [entry, entry]) })),
    ],
    [
      'a record that the keyset does not name',
      'targeted',
      () =>
        async ({ path: address, honest }) => {
          if (!address.startsWith('/v1/e2e/records/')) return null;
          const answer = await honest();
          return { ...answer, ...json({ ...JSON.parse(Buffer.from(answer.body).toString()), status: 'elsewhere' }) };
        },
    ],
    [
      'simulated machines in the place of real ones',
      'targeted',
      () => () => null,
      () => {
        const store = memoryStore();
        void store.save(JSON.stringify({ v: 1, choices: [], has_seen_real: true }));
        return { store, policy: { allowSimulated: false } };
      },
    ],
    [
      'a keyset outside of the log',
      'split_view',
      () => withKeyset(({ log: _, ...keyset }) => keyset),
      () => ({ policy: { log: 'required', logKey: network.logKey } }),
    ],
    [
      'another keyset than the logged one',
      'split_view',
      () => withKeyset((keyset) => ({ ...keyset, providers: keyset.providers.slice(1) })),
      () => ({ policy: { log: 'required', logKey: network.logKey } }),
    ],
  ])('%s: %s, and nothing is sealed', async (_name, code, behaviour, options) => {
    coordinator.become(behaviour());
    await requireRefusal(code, false, options?.());
    expect(coordinator.sealedRequests).toEqual([]);
  });
});

test('a keyset for this account under another epoch is not used', async () => {
  const { publicKey } = generateSealingKeyPair();
  const swapped = { x25519: toBase64(publicKey), key_id: keyIdOf(publicKey) };
  coordinator.become(
    withKeyset(({ epoch, providers, ...keyset }, { apiKey }) =>
      apiKey === null
        ? { ...keyset, epoch, providers }
        : { ...keyset, epoch: epoch + 1, providers: providers.map((entry) => ({ ...entry, ...swapped })) },
    ),
  );
  expect(await network.ask(false)).toMatchObject({ isComplete: true, verdicts: [{ state: 'verified' }] });
  expect(coordinator.sealedRequests).toHaveLength(1);
  expect(Buffer.from(coordinator.sealedRequests[0] ?? []).toString('latin1')).not.toContain(swapped.key_id);
});

/** Answer of an earlier exchange, as a coordinator may keep it. */
async function earlierAnswer(stream: boolean): Promise<HonestAnswer> {
  let kept: HonestAnswer | null = null;
  coordinator.become(
    withAnswer((answer) => {
      kept = answer;
      return answer;
    }),
  );
  expect(await network.ask(stream)).toMatchObject({ isComplete: true });
  if (kept === null) throw new Error('no answer');
  return kept;
}

function* repeated(chunk: Uint8Array, count: number): Generator<Uint8Array> {
  for (let index = 0; index < count; index++) yield chunk;
}

/** Answers sealed requests with changed headers of the honest answer. */
function withHeaders(headers: Readonly<Record<string, string>>): Behaviour {
  return withAnswer((answer) => ({ ...answer, headers: { ...answer.headers, ...headers } }));
}

/** Abort frame with a changed status, which the encoder would refuse. */
function abortOf(status: string): Uint8Array {
  const frame = Buffer.from(encodeE2eAbort({ status: 503, code: 'gone', message: '' }));
  frame.write(status, frame.indexOf('"status":503'));
  return frame;
}

const flipped = (frame: Uint8Array | undefined): Uint8Array => (frame ?? new Uint8Array(9)).with(8, (frame?.[8] ?? 0) ^ 1);
const FORGED_EVENT = Buffer.from(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: FORGED } }] })}\n\n`);
const FORGED_ANSWER = { object: 'chat.completion', choices: [{ index: 0, message: { role: 'assistant', content: FORGED } }] };

describe.each([false, true])('answers (stream: %s)', (stream) => {
  test.each<[string, E2ERefusalCode, () => Behaviour]>([
    [
      'a frame of which a bit changed',
      'open_failed',
      () => withFrames((nonce, [first, second, ...rest]) => [nonce, first, flipped(second), ...rest]),
    ],
    ['another response nonce', 'open_failed', () => withFrames((_nonce, frames) => [randomBytes(32), ...frames])],
    ['swapped frames', 'truncated', () => withFrames((nonce, [first, second, ...rest]) => [nonce, second, first, ...rest])],
    ['a dropped frame', 'truncated', () => withFrames((nonce, [first, _second, ...rest]) => [nonce, first, ...rest])],
    ['a repeated frame', 'open_failed', () => withFrames((nonce, [first, ...rest]) => [nonce, first, first, ...rest])],
    ['a final mark before the end', 'open_failed', () => withFrames((nonce, [first]) => [nonce, first?.with(0, 1)])],
    ['no final frame', 'truncated', () => withFrames((nonce, frames) => [nonce, ...frames.slice(0, -1)])],
    [
      'half a final frame',
      'truncated',
      () => withFrames((nonce, frames) => [nonce, ...frames.slice(0, -1), frames.at(-1)?.subarray(0, 20)]),
    ],
    ['no frame', 'truncated', () => withFrames((nonce) => [nonce])],
    ['keep-alives in place of the end', 'truncated', () => withFrames((nonce, [first]) => [nonce, first, e2eKeepAlive(), e2eKeepAlive()])],
    ['late frames after the final one', 'coordinator_said', () => withFrames((nonce, frames) => [nonce, ...frames, ...frames])],
    [
      'an abort',
      'coordinator_said',
      () => withFrames((nonce, [first]) => [nonce, first, encodeE2eAbort({ status: 503, code: 'provider_lost', message: 'Gone.' })]),
    ],
    [
      'an abort in place of the answer',
      'coordinator_said',
      () => withFrames(() => [new Uint8Array(32), encodeE2eAbort({ status: 503, code: 'no_provider', message: 'None.' })]),
    ],
    ['an abort with status 200', 'coordinator_said', () => withFrames((nonce, [first]) => [nonce, first, abortOf('"status":200')])],
    ['an unknown flag', 'coordinator_said', () => withFrames((nonce, [first, ...rest]) => [nonce, first?.with(0, 2), ...rest])],
    ['a frame shorter than its tag', 'coordinator_said', () => withFrames((nonce, [first]) => [nonce, first, Uint8Array.of(0, 0, 0, 5)])],
    [
      'an empty final frame',
      'coordinator_said',
      () => withFrames((nonce, frames) => [nonce, ...frames.slice(0, -1), Uint8Array.of(1, 0, 0, 0)]),
    ],
    [
      'a final frame without its mark',
      'open_failed',
      () => withFrames((nonce, frames) => [nonce, ...frames.slice(0, -1), frames.at(-1)?.with(0, 0)]),
    ],
    ['the final frame alone', 'truncated', () => withFrames((nonce, frames) => [nonce, frames.at(-1)])],
    [
      'a connection that breaks within a frame',
      'truncated',
      () =>
        withAnswer((answer) => {
          const { 'transfer-encoding': _, ...kept } = answer.headers;
          const headers = { ...kept, 'content-length': String(answer.body.length), connection: 'close' };
          return { ...answer, headers, body: answer.body.subarray(0, -100) };
        }),
    ],
    ['injected events', 'coordinator_said', () => withFrames((nonce, [first, ...rest]) => [nonce, first, FORGED_EVENT, ...rest])],
    ['a frame of 16 MiB', 'coordinator_said', () => withFrames((nonce, [first]) => [nonce, first, Uint8Array.of(0, 0xff, 0xff, 0xff)])],
    [
      "another candidate's name",
      'open_failed',
      () => withAnswer((answer) => ({ ...answer, headers: { ...answer.headers, 'inference-e2e-recipient': otherRecipient(answer) } })),
    ],
    [
      'a candidate that does not exist',
      'downgraded',
      () => withAnswer((answer) => ({ ...answer, headers: { ...answer.headers, 'inference-e2e-recipient': '7' } })),
    ],
    [
      "another job's id",
      'bad_proof',
      () =>
        withAnswer((answer) => ({
          ...answer,
          headers: { ...answer.headers, 'x-inference-job-id': '01234567-89ab-7cde-8f01-23456789abcd' },
        })),
    ],
    ['two candidates', 'downgraded', () => withHeaders({ 'inference-e2e-recipient': '0, 1' })],
    [
      'two content types',
      'downgraded',
      () => withHeaders({ 'content-type': 'application/vnd.inference.sealed-response, text/event-stream' }),
    ],
    ['no job', 'downgraded', () => withHeaders({ 'x-inference-job-id': '' })],
    ['a part of the answer (206)', 'downgraded', () => withAnswer((answer) => ({ ...answer, status: 206 }))],
    ['a plain answer', 'downgraded', () => instead('/v1/e2e/requests', () => json(FORGED_ANSWER))],
    [
      'plain events',
      'downgraded',
      () => instead('/v1/e2e/requests', () => ({ headers: { 'content-type': 'text/event-stream' }, body: FORGED_EVENT })),
    ],
    ['a 404', 'downgraded', () => instead('/v1/e2e/requests', () => ({ status: 404 }))],
    [
      'a redirect to the plain endpoint',
      'downgraded',
      () => instead('/v1/e2e/requests', () => ({ status: 307, headers: { location: '/v1/chat/completions' } })),
    ],
  ])('%s: %s', async (_name, code, behaviour) => {
    coordinator.become(behaviour());
    await requireRefusal(code, stream);
    expect(coordinator.sealedRequests).toHaveLength(1);
    expect(coordinator.received.some((request) => request.includes('POST /v1/chat'))).toBe(false);
  });

  test('the answer to another request: open_failed', async () => {
    const kept = await earlierAnswer(stream);
    coordinator.become(withAnswer(() => kept));
    await requireRefusal('open_failed', stream);
  });

  test("another answer's final frame, with its receipt: open_failed", async () => {
    const [, frames] = framesOf((await earlierAnswer(stream)).body);
    coordinator.become(withFrames((nonce, own) => [nonce, ...own.slice(0, -1), frames.at(-1)]));
    await requireRefusal('open_failed', stream);
  });

  test.each([400, 401, 402, 409, 422, 429, 500, 503])('a forged %d: coordinator_said, with its status for the SDK', async (status) => {
    coordinator.become(instead('/v1/e2e/requests', () => ({ status, ...json({ error: { message: 'forged', code: 'forged' } }) })));
    expect((await requireRefusal('coordinator_said', stream)).error?.status).toBe(status);
  });

  test('an error without end: coordinator_said', async () => {
    coordinator.become(instead('/v1/e2e/requests', () => ({ status: 500, body: repeated(new Uint8Array(65_536), 1024) })));
    await requireRefusal('coordinator_said', stream);
  });

  test('an answer that is withheld until the SDK repeats the request: open_failed', async () => {
    let withheld: HonestAnswer | null = null;
    coordinator.become(
      withAnswer((answer) => {
        if (withheld !== null) return withheld;
        withheld = answer;
        return { status: 503, headers: { 'retry-after': '0.01' }, body: new Uint8Array() };
      }),
    );
    const outcome = await network.ask(stream, { maxRetries: 2 });
    expect(outcome).toMatchObject({ isComplete: false, text: '', error: { code: 'open_failed' } });
    const [first, second] = coordinator.sealedRequests.map((bytes) => Buffer.from(bytes).toString('latin1'));
    expect(coordinator.sealedRequests).toHaveLength(2);
    expect(first).not.toBe(second);
    network.requireNoPlaintext();
  });

  test('keys that are stale each time: sealed twice, then coordinator_said', async () => {
    const problem = { status: 422, headers: { 'content-type': 'application/problem+json' }, body: Buffer.from('{}') };
    coordinator.become(instead('/v1/e2e/requests', () => problem));
    await requireRefusal('coordinator_said', stream);
    expect(coordinator.sealedRequests).toHaveLength(2);
  });

  test.each<[string, E2ERefusalCode, (context: string) => string]>([
    // A model that nobody serves is a 404 of the coordinator.
    ['model', 'downgraded', (context) => context.replace(`"model":"${MODEL}"`, `"model":"${MODEL.replace('end', 'END')}"`)],
    ['endpoint', 'coordinator_said', (context) => context.replace('"/v1/chat/completions"', '"/v1/completions"')],
    ['max_tokens', 'coordinator_said', (context) => context.replace('"max_tokens":100', '"max_tokens":999')],
    ['stream', 'coordinator_said', (context) => context.replace(`"stream":${stream}`, `"stream":${!stream}`)],
    ['nonce', 'coordinator_said', (context) => context.replace(/"nonce":"[^"]{43}/, `"nonce":"${'A'.repeat(43)}`)],
    [
      'end',
      'coordinator_said',
      (context) => context.replace(/("expires_at":\d*)(\d)/, (_, start, digit) => `${start}${9 - Number(digit)}`),
    ],
    ['length', 'coordinator_said', (context) => context.replace(/"body_bytes":\d+/, '"body_bytes":7')],
    ['order of recipients', 'coordinator_said', (context) => context.replace(/(\{"key_id[^}]*\}),(\{"key_id[^}]*\})/, '$2,$1')],
  ])('no provider opens a request whose %s was changed', async (_name, code, change) => {
    let hasChanged = false;
    coordinator.become(({ path, body, honest }) => {
      if (path !== '/v1/e2e/requests') return null;
      const changed = withContext(body, change);
      hasChanged = Buffer.compare(changed, body) !== 0;
      return honest({ body: changed });
    });
    await requireRefusal(code, stream);
    expect(hasChanged).toBe(true);
  });
});

describe("the coordinator's own headers", () => {
  const clientOf = () => createVerifiedFetch({ baseURL: coordinator.address, policy: { allowSimulated: true } });

  test('do not reach the caller of an inference request', async () => {
    const forged = {
      'x-provider-trust-level': 'hardware',
      'x-inference-receipt': 'forged',
      'x-se-signature': 'forged',
      'x-inference-ignored': 'forged',
      'set-cookie': 'forged=1',
    };
    coordinator.become(withHeaders(forged));
    const body = JSON.stringify({ model: MODEL, messages: [{ role: 'user', content: PROMPT }] });
    const headers = { authorization: `Bearer ${network.harness.apiKey}` };
    const response = await clientOf()(`${coordinator.address}/v1/chat/completions`, { method: 'POST', headers, body });
    expect(verdictOf(response)).toMatchObject({ state: 'verified' });
    expect(JSON.stringify([...response.headers])).not.toContain('forged');
    expect(response.headers.has('x-provider-trust-level')).toBe(false);
  });

  test('do not mark answers to GET as verified', async () => {
    coordinator.become(instead('/v1/models', () => ({ headers: { 'x-inference-e2e': 'verified' } })));
    const response = await clientOf()(`${coordinator.address}/v1/models`);
    expect(verdictOf(response)).toEqual({ state: 'unverified' });
    expect(response.headers.get('x-inference-e2e')).toBe('unverified');
  });
});

/** A sealed request with a changed context, and the context's length with it. */
function withContext(bytes: Uint8Array, change: (context: string) => string): Uint8Array {
  const body = Buffer.from(bytes);
  const length = body.readUInt16BE(5);
  const context = Buffer.from(change(body.toString('utf8', 7, 7 + length)));
  const size = Buffer.alloc(2);
  size.writeUInt16BE(context.length);
  return Buffer.concat([body.subarray(0, 5), size, context, body.subarray(7 + length)]);
}

function otherRecipient({ headers }: HonestAnswer): string {
  return headers['inference-e2e-recipient'] === '0' ? '1' : '0';
}
