/** Trust as providers and clients see it: real sockets, a real coordinator, forged statements and a loss of trust during a session. */
import { rmSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { canonicalJsonBytes, fromBase64, type JsonValue, type Register, statementBytes, toBase64, utf8 } from '@inference/protocol';
import { generateSealingKeyPair, providerIdOf, sha256Hex } from '@inference/protocol/crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { EnclaveKey } from '../../../../../test/support/enclave-key.js';
import { readConfig } from '../../../src/config/config.js';
import { type Harness, type HarnessOptions, MODEL, startHarness, until } from '../../support/harness.js';
import { type ProviderOptions, ScriptedProvider } from '../../support/scripted-provider.js';
import { SharedHarness } from '../../support/shared-harness.js';
import { DeviceWorld } from './device-fixtures.js';

let harness: Harness;
/** Coordinators that only one test uses at a time. */
const own: Harness[] = [];
afterEach(async () => {
  for (const each of own.splice(0)) await each.close();
});

const withoutSettings = new SharedHarness();
afterAll(() => withoutSettings.close());

async function startOwn(options?: HarnessOptions): Promise<Harness> {
  const started = options === undefined ? await withoutSettings.take() : await startHarness(options);
  own.push(started);
  return started;
}

async function refusal(options: ProviderOptions): Promise<string> {
  const provider = new ScriptedProvider(harness.url, { models: [MODEL], ...options });
  await provider.closed;
  return `${provider.rejection} ${provider.rejectionReason}`;
}

type Kind = 'attestation' | 'challenge' | 'key';
const payloadOf = (register: Register, kind: Kind): Record<string, JsonValue> =>
  JSON.parse(Buffer.from(register[kind].payload, 'base64').toString());

/** Changes members of a statement in the register message and signs the statement again. */
function resigned(
  enclave: EnclaveKey,
  kind: Kind,
  change: (members: Record<string, JsonValue>) => Record<string, JsonValue>,
): ProviderOptions {
  return { enclave, register: (register) => ({ ...register, [kind]: enclave.statement(kind, change(payloadOf(register, kind))) }) };
}

/** Changes the text of a statement and signs it unchanged otherwise. */
function retexted(enclave: EnclaveKey, kind: Kind, change: (text: string) => string): ProviderOptions {
  return {
    enclave,
    register: (register) => {
      const text = change(Buffer.from(register[kind].payload, 'base64').toString());
      return {
        ...register,
        [kind]: { payload: toBase64(utf8(text)), signature: toBase64(enclave.sign(statementBytes(kind, utf8(text)))) },
      };
    },
  };
}

const HOUR_MS = 3_600_000;
const key = new EnclaveKey();
const otherKey = new EnclaveKey();
const attested = (change: Record<string, JsonValue>) => resigned(key, 'attestation', (members) => ({ ...members, ...change }));
const bound = (change: Record<string, JsonValue>) => resigned(key, 'key', (members) => ({ ...members, ...change }));

const refusals: readonly [name: string, options: () => ProviderOptions, expected: string][] = [
  [
    'an edited attestation',
    () => ({
      register: (register) => {
        const edited = canonicalJsonBytes({ ...payloadOf(register, 'attestation'), chip_name: 'Apple M9 Ultra' });
        return { ...register, attestation: { ...register.attestation, payload: toBase64(edited) } };
      },
    }),
    'attestation_refused attestation_bad_signature',
  ],
  [
    'a duplicate key in the attestation',
    () => retexted(key, 'attestation', (text) => text.replace('{', '{"memory_gb":1024,')),
    'attestation_refused attestation_not_canonical',
  ],
  [
    'a member that it must not ignore',
    () => attested({ crit: ['lives_on_the_moon'], lives_on_the_moon: true }),
    'attestation_refused attestation_unknown_critical',
  ],
  ['an attestation without posture', () => attested({ posture: null }), 'attestation_refused attestation_bad_schema'],
  [
    'an attestation that is no JSON',
    () => ({ register: (register) => ({ ...register, attestation: { ...register.attestation, payload: toBase64(utf8('hello')) } }) }),
    'attestation_refused attestation_unreadable',
  ],
  ['a stale attestation', () => attested({ issued_at: Date.now() - 25 * HOUR_MS }), 'attestation_refused attestation_too_old'],
  ['an attestation of the future', () => attested({ issued_at: Date.now() + HOUR_MS }), 'attestation_refused attestation_from_future'],
  ...['M4\r\nX-Injected: 1', '<img src=x>', 'M4\u0000', '\u202eM4'].map((text): (typeof refusals)[number] => [
    `a chip called ${JSON.stringify(text)}`,
    () => attested({ chip_name: text }),
    'attestation_refused attestation_bad_schema',
  ]),
  ['a model of markup', () => attested({ hardware_model: 'Mac"><script>' }), 'attestation_refused attestation_bad_schema'],
  ['a serial number with a line break', () => attested({ serial_number: 'SER\r\nIAL' }), 'attestation_refused attestation_bad_schema'],
  ['a chip with a blank before its name', () => attested({ chip_name: ' M4' }), 'attestation_refused attestation_unsafe_text'],
  ['a serial number of two words', () => attested({ serial_number: 'SERIAL 1' }), 'attestation_refused attestation_unsafe_text'],
  [
    'an answer signed by another key',
    () => ({
      register: (register) => ({ ...register, challenge: otherKey.statement('challenge', payloadOf(register, 'challenge')) }),
    }),
    'challenge_failed challenge_bad_signature',
  ],
  [
    'an answer for another session',
    () => resigned(key, 'challenge', (members) => ({ ...members, session_id: 'another' })),
    'challenge_failed challenge_other_session',
  ],
  [
    'an answer to another nonce',
    () => resigned(key, 'challenge', (members) => ({ ...members, nonce: toBase64(new Uint8Array(32)) })),
    'challenge_failed challenge_unknown',
  ],
  [
    'an answer of another time',
    () => resigned(key, 'challenge', (members) => ({ ...members, issued_at: Date.now() - HOUR_MS })),
    'challenge_failed challenge_clock',
  ],
  ['SIP off', () => ({ posture: { sip_enabled: false } }), 'posture_insufficient sip_disabled'],
  ['secure boot off', () => ({ posture: { secure_boot_enabled: false } }), 'posture_insufficient secure_boot_disabled'],
  [
    'a sealing key swapped for another',
    () => bound({ x25519_public_key: toBase64(generateSealingKeyPair().publicKey) }),
    'key_refused key_id_differs',
  ],
  [
    'a sealing key that another enclave signed',
    () => ({ register: (register) => ({ ...register, key: otherKey.statement('key', payloadOf(register, 'key')) }) }),
    'key_refused key_bad_signature',
  ],
  ['a sealing key of another provider', () => bound({ provider_id: providerIdOf(otherKey.publicKey) }), 'key_refused key_other_provider'],
  ['a sealing key of another attestation', () => bound({ attestation_sha256: '0'.repeat(64) }), 'key_refused key_other_attestation'],
  ['a sealing key of 31 bytes', () => bound({ x25519_public_key: toBase64(new Uint8Array(31)) }), 'key_refused key_size'],
  ['a sealing key for a day', () => bound({ not_after: Date.now() + 24 * HOUR_MS }), 'key_refused key_lifetime'],
  [
    'a sealing key of tomorrow',
    () => bound({ not_before: Date.now() + 24 * HOUR_MS, not_after: Date.now() + 24.5 * HOUR_MS }),
    'key_refused key_not_yet_valid',
  ],
  ['a sealing key of yesterday', () => bound({ not_before: Date.now() - HOUR_MS, not_after: Date.now() - 1 }), 'key_refused key_expired'],
];

describe('a provider that registers', () => {
  // A coordinator for all tests: a refused provider leaves nothing behind.
  let shared: Harness;
  beforeAll(async () => {
    shared = await startHarness();
    return () => shared.close();
  });

  it.each(refusals)('with %s gets the exact reason', async (_name, options, expected) => {
    harness = shared;
    expect(await refusal(options())).toBe(expected);
    expect((await harness.chat()).status).toBe(404);
    expect(harness.log.join()).not.toContain('X-Injected');
  });

  it('may send members that this coordinator does not know', async () => {
    harness = await startOwn();
    await harness.provider({ attestation: (attestation) => ({ ...attestation, zz_future: { a: [1] } }) });
    expect((await harness.chat()).status).toBe(200);
  });
});

describe('answers to challenges', () => {
  const timings = { challengeIntervalMs: 60, challengeAnswerMs: 600 };
  const wrong: readonly [name: string, onChallenge: NonNullable<ProviderOptions['onChallenge']>, expected: string][] = [
    ['replayed', (_nonce, self) => self.answer(self.firstNonce), 'challenge_failed challenge_replayed'],
    ['to a nonce that nobody asked', (_nonce, self) => self.answer(toBase64(new Uint8Array(32))), 'challenge_failed challenge_unknown'],
    [
      'meant for another session',
      (nonce, self) =>
        self.enclave.statement('challenge', { v: 1, nonce, session_id: 'x', posture: { ...self.posture }, issued_at: Date.now() }),
      'challenge_failed challenge_other_session',
    ],
    [
      'signed by another key',
      (nonce, self) =>
        otherKey.statement('challenge', { v: 1, nonce, session_id: self.sessionId, posture: { ...self.posture }, issued_at: Date.now() }),
      'challenge_failed challenge_bad_signature',
    ],
    [
      'that claim an enclave at once',
      (nonce, self) => self.answer(nonce, { secure_enclave: true }),
      'challenge_failed challenge_contradiction',
    ],
    ['without SIP', (nonce, self) => self.answer(nonce, { sip_enabled: false }), 'posture_insufficient sip_disabled'],
    ['that never come', () => null, 'challenge_failed challenge_unanswered'],
  ];

  it.each(wrong)('%s end the session with the exact reason', async (_name, onChallenge, expected) => {
    harness = await startOwn({ providerTimings: timings });
    const provider = await harness.provider({ onChallenge });
    await provider.closed;
    expect(`${provider.rejection} ${provider.rejectionReason}`).toBe(expected);
    expect((await harness.chat()).status).toBe(503);
  });

  it('that come late are counted and reported, and a second time are a replay', async () => {
    harness = await startOwn({ providerTimings: timings });
    let late: string | null = null;
    const provider = await harness.provider({
      onChallenge: (nonce, self) => {
        if (late !== null) return self.answer(nonce);
        late = nonce;
        return null;
      },
    });
    const warning = () =>
      provider.received.find((message) => message.type === 'trust' && message.parts.some(({ reason }) => reason === 'challenge_missed'));
    await until(() => warning() !== undefined);
    expect(warning()).toMatchObject({ trust_level: 'self_signed', routable: true });
    provider.send({ type: 'challenge_answer', challenge: provider.answer(late ?? '') });
    await until(() => [...harness.app.providers.snapshots()].some(({ counters }) => counters.lateAnswers === 1));
    // The next challenge was answered in time, and the warning is withdrawn.
    await until(() => provider.standing?.parts.every(({ reason }) => reason !== 'challenge_missed') === true);
    provider.send({ type: 'challenge_answer', challenge: provider.answer(late ?? '') });
    await provider.closed;
    expect(provider.rejectionReason).toBe('challenge_replayed');
  });

  it('that come late and report SIP as off still count', async () => {
    harness = await startOwn({ providerTimings: timings });
    let late: string | null = null;
    const provider = await harness.provider({
      onChallenge: (nonce, self) => {
        // The second challenge follows the deadline of the first.
        if (late !== null) return self.answer(late, { sip_enabled: false });
        late = nonce;
        return null;
      },
    });
    await provider.closed;
    expect(provider.rejectionReason).toBe('sip_disabled');
    expect(provider.received.filter(({ type }) => type === 'challenge')).toHaveLength(2);
  });

  it('leave a transcript that can be checked again', async () => {
    harness = await startOwn({ providerTimings: timings });
    const provider = await harness.provider();
    const lastChallenge = () => harness.app.providers.snapshot(provider.providerId)?.lastChallenge;
    expect(lastChallenge()).toMatchObject({ nonce: provider.firstNonce, sessionId: provider.sessionId });
    await until(() => lastChallenge()?.nonce !== provider.firstNonce);
    const asked = provider.received.filter((message) => message.type === 'challenge').map(({ nonce }) => nonce);
    expect(asked).toContain(lastChallenge()?.nonce);
    const payload = JSON.parse(Buffer.from(lastChallenge()?.statement.payload ?? '', 'base64').toString()) as object;
    expect(payload).toMatchObject({ nonce: lastChallenge()?.nonce, session_id: provider.sessionId });
  });
});

it('a frame of 100 MB ends its own connection before it is read', async () => {
  harness = await startOwn();
  const [huge, quiet] = [await harness.provider(), await harness.provider({ models: ['quiet'] })];
  const before = process.memoryUsage().rss;
  const bytes = 100 * 1024 * 1024;
  const head = Buffer.from([0x82, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
  head.writeUInt32BE(bytes, 6);
  // Masked with zeros, as masking takes a second of processor time.
  const { _socket: raw } = huge.socket as unknown as { _socket: Socket };
  raw.on('error', () => {});
  raw.write(head);
  raw.write(Buffer.alloc(bytes));
  expect([1006, 1009]).toContain(await huge.closed);
  // The sender's zeros take no memory, because the system maps them only when they are written.
  expect(process.memoryUsage().rss - before).toBeLessThan(95 * 1024 * 1024);
  expect(quiet.socket.readyState).toBe(WebSocket.OPEN);
  expect((await harness.chat({ model: 'quiet' })).status).toBe(200);
});

describe('a provider always knows its status', () => {
  it('from the beginning: the level, every part, and the remedies', async () => {
    harness = await startOwn();
    const provider = await harness.provider();
    const standing = await provider.next('trust');
    expect(standing).toMatchObject({ trust_level: 'self_signed', routable: true, status: 'online' });
    const management = standing.parts.find(({ name }) => name === 'device_management');
    expect(management).toMatchObject({ state: 'missing', reason: 'not_enrolled' });
    expect(management?.remedy).toContain('profile');
    expect(standing.parts.filter(({ state }) => state === 'ok').map(({ name }) => name)).toEqual([
      'attestation',
      'enclave',
      'posture',
      'challenge',
      'sealing_key',
    ]);
  });

  it('when it gets no jobs, the message says so', async () => {
    harness = await startOwn();
    const provider = await harness.provider({
      onJob: (job) => job.answerHonestly(undefined, { message: (m) => ({ ...m, response_sha256: '0'.repeat(64) }) }),
    });
    expect((await harness.chat()).status).toBe(502);
    await until(() => provider.standing?.status === 'quarantined');
    expect(provider.standing?.routable).toBe(false);
    expect(provider.standing?.status_remedy).toContain('or when the operator of the network clears its failures.');
    harness.app.providers.reputations.reinstate(provider.providerId);
    await until(() => provider.standing?.routable === true);
    provider.send({ type: 'draining' });
    await until(() => provider.standing?.status === 'draining');
  });

  it('when its sealing key expires, without any message of its own', async () => {
    let now = Date.now();
    harness = await startOwn({ now: () => now });
    const provider = await harness.provider({
      keyStatement: (statement) => ({ ...(statement as object), not_before: now, not_after: now + 400 }) as JsonValue,
    });
    now += 400;
    await until(() => provider.standing?.status === 'key_expired');
    expect(provider.standing).toMatchObject({ trust_level: 'none', routable: false });
    expect(provider.standing?.parts.find(({ name }) => name === 'sealing_key')).toMatchObject({
      state: 'stale',
      reason: 'sealing_key_expired',
    });
  });

  it('only after a change', async () => {
    harness = await startOwn();
    const provider = await harness.provider();
    for (let round = 0; round < 3; round++) expect((await harness.chat()).status).toBe(200);
    expect(provider.received.filter(({ type }) => type === 'trust')).toHaveLength(1);
  });
});

describe('hardware', () => {
  const now = Date.now();
  const world = new DeviceWorld(now - 120_000);
  const anchorFile = join(tmpdir(), `simulated-root-${process.pid}.pem`);
  const simulation = { simulatedDeviceAuthority: anchorFile };
  beforeAll(() => {
    writeFileSync(anchorFile, world.authority.rootPem);
    return () => rmSync(anchorFile);
  });
  const serial = 'SM0A1B2C3D';
  const evidenceFor = (enclave: EnclaveKey) => world.evidence(enclave.publicKey, {}, now - 60_000);

  it('is reached with all evidence, reported, published, and lost when SIP turns off', async () => {
    harness = await startOwn({ config: simulation, providerTimings: { challengeIntervalMs: 150, challengeAnswerMs: 5000 } });
    let sip = true;
    const provider = await harness.provider({ serial, onChallenge: (nonce, self) => self.answer(nonce, { sip_enabled: sip }) });
    expect((await harness.chat()).headers.get('x-provider-trust-level')).toBe('self_signed');
    harness.app.providers.setDeviceEvidence(provider.providerId, evidenceFor(provider.enclave));
    await until(() => provider.standing?.trust_level === 'hardware');
    expect(provider.standing?.parts.every(({ state }) => state === 'ok')).toBe(true);
    const { headers } = await harness.chat();
    expect([headers.get('x-provider-trust-level'), headers.get('x-provider-mda-verified')]).toEqual(['hardware', 'true']);
    const feed = (await (await harness.get('/v1/providers/attestation', null)).json()) as { providers: object[]; trust_anchor: object };
    expect(feed.providers[0]).toMatchObject({ trust_level: 'hardware', secure_enclave: false, mdm_verified: true, mda_verified: true });
    expect(feed.trust_anchor).toMatchObject({ common_name: 'Simulated Enterprise Attestation Root CA', simulated: true });
    sip = false;
    await provider.closed;
    expect(provider.rejectionReason).toBe('sip_disabled');
    expect((await harness.chat()).status).toBe(503);
  });

  it('is lost at once when device management withdraws its evidence', async () => {
    harness = await startOwn({ config: simulation });
    const provider = await harness.provider({ serial });
    const evidence = evidenceFor(provider.enclave);
    harness.app.providers.setDeviceEvidence(provider.providerId, evidence);
    await until(() => provider.standing?.trust_level === 'hardware');
    const security = evidence.security && { ...evidence.security, sipEnabled: false };
    harness.app.providers.setDeviceEvidence(provider.providerId, { ...evidence, security });
    await until(() => provider.standing?.trust_level === 'self_signed');
    expect((await harness.chat()).headers.get('x-provider-trust-level')).toBe('self_signed');
    expect(provider.standing?.parts.find(({ name }) => name === 'device_management')?.remedy).toContain('csrutil enable');
  });

  it('does not pass to a new enclave key of the same serial number', async () => {
    harness = await startOwn({ config: simulation });
    const first = await harness.provider({ serial });
    const evidence = evidenceFor(first.enclave);
    const second = await harness.provider({ serial });
    harness.app.providers.setDeviceEvidence(second.providerId, evidence);
    await until(() => second.standing?.parts.some(({ reason }) => reason === 'evidence_of_another_key') === true);
    expect(second.standing?.trust_level).toBe('self_signed');
    // The same holds even if the store attributed the evidence to the other key.
    harness.app.providers.setDeviceEvidence(second.providerId, { ...evidence, publicKeySha256: sha256Hex(second.enclave.publicKey) });
    await until(() => second.standing?.parts.some(({ reason }) => reason === 'binding_of_another_key') === true);
    expect(second.standing?.trust_level).toBe('self_signed');
  });

  it('is not reached by a simulation without the setting', async () => {
    harness = await startOwn();
    const provider = await harness.provider({ serial });
    harness.app.providers.setDeviceEvidence(provider.providerId, evidenceFor(provider.enclave));
    await until(() => provider.standing?.parts.some(({ detail }) => detail === 'anchor_name') === true);
    expect(provider.standing?.trust_level).toBe('self_signed');
    const feed = (await (await harness.get('/v1/providers/attestation', null)).json()) as { trust_anchor: object };
    expect(feed.trust_anchor).toMatchObject({ common_name: 'Apple Enterprise Attestation Root CA', simulated: false });
  });

  it('needs a valid anchor', async () => {
    expect(() => readConfig({ SIMULATED_DEVICE_AUTHORITY: anchorFile })).toThrow('ALLOW_SIMULATED_ENCLAVE=1');
    await expect(startHarness({ config: { simulatedDeviceAuthority: '/nowhere.pem' } })).rejects.toThrow('ENOENT');
    const bare = join(tmpdir(), `not-a-root-${process.pid}.pem`);
    writeFileSync(bare, toBase64(fromBase64('AAAA')));
    await expect(startHarness({ config: { simulatedDeviceAuthority: bare } })).rejects.toThrow('no certificate of a simulated authority');
    rmSync(bare);
    harness = await startOwn();
  });
});
