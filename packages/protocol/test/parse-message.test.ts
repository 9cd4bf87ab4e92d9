import { describe, expect, test } from 'vitest';
import { CoordinatorMessageSchemas } from '../src/wire/coordinator-messages.js';
import { MAX_TEXT_FRAME_BYTES } from '../src/wire/limits.js';
import { parseCoordinatorMessage, parseProviderMessage } from '../src/wire/parse-message.js';
import { ProviderMessageSchemas } from '../src/wire/provider-messages.js';
import { jobContext } from './samples.js';

const statement = { payload: 'e30=', signature: 'MAA=' };
const offer = { id: 'pico', model_type: 'text', display_name: 'Pico', quantization: '8bit', context_length: 512 };
const job_id = jobContext.job_id;
const sha256 = 'ab'.repeat(32);

const settings = {
  remote_control: true,
  pause: { by: 'console', until: 1 },
  schedule: { windows: 'mon-fri 22:00-07:00', time_zone: 'Europe/Berlin' },
  models: [{ id: 'pico', served: true, bytes: 1 }],
  models_fixed: false,
};

const provider: Record<keyof typeof ProviderMessageSchemas, object> = {
  hello: { type: 'hello', versions: [1], agent: { name: 'provider', version: '0.1.0' } },
  register: {
    type: 'register',
    attestation: statement,
    challenge: statement,
    key: statement,
    hardware: {
      chip_family: 'M4',
      cpu_cores: 10,
      gpu_cores: 10,
      bandwidth_gbs: 120,
      performance_cores: 4,
      efficiency_cores: 6,
      os_name: 'macOS',
      os_version: '26.1',
      os_build: '25B78',
    },
    models: [offer],
    slots: 4,
    e2e_versions: [1],
    availability: { state: 'away', reason: 'paused', until: 1 },
    remote_control: { versions: [1], allowed: true },
  },
  challenge_answer: { type: 'challenge_answer', challenge: statement },
  key_update: { type: 'key_update', key: statement },
  models: { type: 'models', models: [offer] },
  load: { type: 'load', active_jobs: 0, decode_tps: 12.5, prefill_tps: 250 },
  draining: { type: 'draining' },
  availability: { type: 'availability', state: 'leaving', reason: 'outside_schedule', until: 1 },
  job_accepted: { type: 'job_accepted', job_id },
  job_progress: { type: 'job_progress', job_id },
  job_failed: {
    type: 'job_failed',
    job_id,
    failure: { code: 'context_length_exceeded', param: 'messages[0].content', limit: 1, actual: 2 },
  },
  job_completed: { type: 'job_completed', job_id, response_sha256: sha256, signature: 'MAA=', receipt: statement },
  enrolment_request: { type: 'enrolment_request' },
  machine_settings: { type: 'machine_settings', settings },
  owner_command_result: { type: 'owner_command_result', command_id: job_id, refusal: 'expired', settings },
  link: { type: 'link', token: `machine-${'a'.repeat(43)}` },
};

const coordinator: Record<keyof typeof CoordinatorMessageSchemas, object> = {
  welcome: { type: 'welcome', version: 1, session_id: 's', nonce: 'AA==', server_time: 1 },
  registered: { type: 'registered', provider_id: jobContext.provider_id, trust_level: 'self_signed', token: 'a'.repeat(76) },
  rejected: { type: 'rejected', code: 'bad_message', reason: 'key_size', message: 'no' },
  trust: {
    type: 'trust',
    trust_level: 'none',
    routable: false,
    status: 'untrusted',
    status_remedy: 'do this',
    parts: [{ name: 'posture', state: 'failed', reason: 'sip_disabled', detail: 'sip_disabled', remedy: 'turn it on' }],
  },
  models_refused: { type: 'models_refused', models: [{ id: 'm', reason: 'hash_differs', remedy: 'pull it again' }] },
  challenge: { type: 'challenge', nonce: 'AA==' },
  job: { type: 'job', context: jobContext, enc: 'AA==', request_bytes: 0, credit: 1, e2e: { v: 1, recipient: 0 } },
  credit: { type: 'credit', job_id, bytes: 1 },
  cancel: { type: 'cancel', job_id },
  enrolment: { type: 'enrolment', url: 'https://gateway.example/mdm/v1/enrolment/x', expires_at: 1 },
  enrolment_refused: { type: 'enrolment_refused', reason: 'not_offered' },
  linked: { type: 'linked', account_id: 'a', account_name: 'Ada' },
  link_refused: { type: 'link_refused', reason: 'token_revoked', remedy: 'log in' },
  owner_command: { type: 'owner_command', command_id: job_id, expires_at: 1, action: { kind: 'fly' } },
};

/** Optional members. */
const OPTIONAL = new Set([
  'registered.token',
  'rejected.reason',
  'trust.status_remedy',
  'trust.parts.reason',
  'trust.parts.detail',
  'trust.parts.remedy',
  'load.decode_tps',
  'load.prefill_tps',
  'register.hardware.performance_cores',
  'register.hardware.efficiency_cores',
  'register.hardware.os_name',
  'register.hardware.os_version',
  'register.hardware.os_build',
  'register.e2e_versions',
  'register.availability',
  'register.availability.reason',
  'register.availability.until',
  'availability.reason',
  'availability.until',
  'job_failed.failure.param',
  'job_failed.failure.limit',
  'job_failed.failure.actual',
  'job.e2e',
  'job.context.client_nonce',
  'job.context.overrides.max_tokens',
  'register.remote_control',
]);

/** Required members that may be null. */
const NULLABLE = new Set([
  'machine_settings.settings.pause',
  'machine_settings.settings.pause.until',
  'owner_command_result.settings.pause',
  'owner_command_result.settings.pause.until',
  'owner_command_result.refusal',
]);

type Json = { [key: string]: unknown };

/** Every object inside a message with its path, including array elements. */
function* objectsIn(value: unknown, path: string): Generator<[string, Json]> {
  if (Array.isArray(value)) for (const item of value) yield* objectsIn(item, path);
  else if (typeof value === 'object' && value !== null) {
    yield [path, value as Json];
    for (const [key, member] of Object.entries(value)) yield* objectsIn(member, `${path}.${key}`);
  }
}

describe.each([
  ['provider', provider, ProviderMessageSchemas, parseProviderMessage],
  ['coordinator', coordinator, CoordinatorMessageSchemas, parseCoordinatorMessage],
] as const)('messages of a %s', (_, samples, schemas, parse) => {
  test('there is a sample of every message', () => {
    expect(Object.keys(samples).sort()).toEqual(Object.keys(schemas).sort());
  });

  describe.each(Object.entries(samples))('%s', (type, sample) => {
    test('is read as it is', () => {
      expect(parse(JSON.stringify(sample))).toEqual({ kind: 'message', message: sample });
    });

    test('may carry unknown members at every level', () => {
      const copy = structuredClone(sample);
      for (const [, object] of objectsIn(copy, type)) object.a_member_of_the_future = [1];
      expect(parse(JSON.stringify(copy)).kind).toBe('message');
    });

    test('is invalid without any one of its required members, or with a null in its place', () => {
      const paths = [...objectsIn(sample, type)].map(([path]) => path);
      for (const [index, path] of paths.entries()) {
        const names = Object.keys([...objectsIn(sample, type)][index]?.[1] ?? {});
        for (const name of names) {
          const without = structuredClone(sample);
          const target = [...objectsIn(without, type)][index]?.[1] as Json;
          target[name] = null;
          const nulled = parse(JSON.stringify(without)).kind;
          delete target[name];
          const missing = parse(JSON.stringify(without));
          const where = `${path}.${name}`;
          if (where === `${type}.type`) {
            expect([nulled, missing.kind], where).toEqual(['invalid', 'invalid']);
          } else if (OPTIONAL.has(where)) {
            expect([nulled, missing.kind], where).toEqual(['invalid', 'message']);
          } else if (NULLABLE.has(where)) {
            expect([nulled, missing.kind], where).toEqual(['message', 'invalid']);
          } else {
            expect(nulled, where).toBe('invalid');
            expect(missing, where).toMatchObject({ kind: 'invalid', code: 'bad_message', reason: expect.stringContaining(name) });
          }
        }
      }
    });
  });

  test.each(['a_type_of_the_future', '', '__proto__', 'constructor', 'toString'])('type %j is reported as unknown', (type) => {
    expect(parse(`{"type":${JSON.stringify(type)},"x":1}`)).toEqual({ kind: 'unknown_type' });
  });

  test.each(['', '{', 'null', '1', '"hello"', '[]', '{}', '{"type":1}', '{"type":null}', '[{"type":"hello"}]'])('%j is invalid', (text) => {
    expect(parse(text)).toMatchObject({ kind: 'invalid', code: 'bad_message' });
  });

  test('a text over the cap is too large, before anything is parsed', () => {
    expect(parse(' '.repeat(MAX_TEXT_FRAME_BYTES + 1))).toMatchObject({ kind: 'invalid', code: 'too_large' });
    const [first] = Object.values(samples);
    expect(parse(JSON.stringify(first).padEnd(MAX_TEXT_FRAME_BYTES)).kind).toBe('message');
  });
});

test.each([
  ['hello', { versions: 1, agent: { name: 'x', version: '1' } }, 'hello.versions'],
  ['hello', { versions: [1, 'secret'], agent: { name: 'x', version: '1' } }, 'hello.versions[]'],
  ['hello', { versions: [1], agent: { name: 'x' } }, 'hello.agent.version'],
  ['availability', { state: 'secret' }, 'availability.state'],
  ['models', { models: [{ id: 'a b' }] }, /^models\.models\[\]\.\w+$/],
])('an invalid %s %j names its field by the schema', (type, members, field) => {
  const parsed = parseProviderMessage(JSON.stringify({ type, secret: { secret: 'secret' }, ...members }));
  expect(parsed).toMatchObject({ kind: 'invalid', field: typeof field === 'string' ? field : expect.stringMatching(field) });
});

test('a text without a known type names no field', () => {
  for (const text of ['{', '{"secret":1}', ' '.repeat(MAX_TEXT_FRAME_BYTES + 1)])
    expect(parseProviderMessage(text)).toMatchObject({ field: null });
});

test('messages of one direction are unknown in the other', () => {
  expect(parseProviderMessage(JSON.stringify(coordinator.cancel))).toEqual({ kind: 'unknown_type' });
  expect(parseCoordinatorMessage(JSON.stringify(provider.hello))).toEqual({ kind: 'unknown_type' });
});

test.each([
  [provider.hello, { versions: [] }],
  [provider.hello, { versions: Array.from({ length: 17 }, () => 1) }],
  [provider.hello, { versions: [1.5] }],
  ...['a\r\nSet-Cookie: b', '<script>', 'a\u0000', '\u202egnp', '"onload="'].flatMap((text) => [
    [provider.hello, { agent: { name: text, version: '1' } }],
    [provider.hello, { agent: { name: 'x', version: text } }],
    [provider.models, { models: [{ ...offer, display_name: text }] }],
    [provider.models, { models: [{ ...offer, quantization: text }] }],
  ]),
  [provider.register, { slots: 0 }],
  [provider.register, { e2e_versions: [] }],
  [provider.register, { models: Array.from({ length: 65 }, () => offer) }],
  [provider.models, { models: [{ ...offer, id: '../x' }] }],
  [provider.load, { active_jobs: -1 }],
  [provider.job_accepted, { job_id: job_id.toUpperCase() }],
  [provider.job_progress, { job_id: 7 }],
  [provider.job_failed, { failure: { code: 'made_up' } }],
  [provider.job_failed, { failure: { code: 'busy', param: 'free text of a provider' } }],
  [provider.job_completed, { response_sha256: sha256.toUpperCase() }],
  [provider.job_completed, { signature: 'A'.repeat(65_540) }],
])('values out of range are invalid: %j with %j', (sample, change) => {
  expect(parseProviderMessage(JSON.stringify({ ...sample, ...change }))).toMatchObject({ kind: 'invalid' });
});

test.each([
  [coordinator.job, { credit: 0 }],
  [coordinator.job, { request_bytes: 32 * 1024 * 1024 + 1 }],
  [coordinator.job, { e2e: { v: 1, recipient: 8 } }],
  [coordinator.job, { context: { ...jobContext, endpoint: '/v1/elsewhere' } }],
  [coordinator.job, { context: { ...jobContext, v: 2 } }],
  [coordinator.credit, { bytes: 0 }],
  [coordinator.rejected, { code: 'made_up' }],
  [coordinator.rejected, { reason: 'Words, not a code' }],
  [coordinator.trust, { trust_level: 'full' }],
  [coordinator.trust, { parts: [{ name: 'posture', state: 'fine' }] }],
  [coordinator.registered, { trust_level: 'full' }],
  [coordinator.registered, { token: 'two words, and a secret' }],
  [coordinator.welcome, { session_id: '' }],
])('values out of range are invalid: %j with %j', (sample, change) => {
  expect(parseCoordinatorMessage(JSON.stringify({ ...sample, ...change }))).toMatchObject({ kind: 'invalid' });
});
