/** Every response, key and keyset that a client must refuse, with the error code. The client never sends the prompt unencrypted. */
import { type E2eKeyset, e2eKeepAlive, encodeE2eAbort, toBase64, utf8 } from '@inference/protocol';
import { generateSealingKeyPair } from '@inference/protocol/crypto';
import OpenAI, { APIError } from 'openai';
import { describe, expect, test } from 'vitest';
import { TestSigner } from '../../protocol/test/log/log-fixture.js';
import { sha256 } from '../../verifier/test/signed-answers.js';
import { createVerifiedFetch, type E2ERefusalCode, E2ERefused, memoryStore, type PolicyInput, type Store, verdictOf } from '../src/node.js';
import { hello } from './answers.js';
import {
  BASE_URL,
  MODEL,
  NOW,
  POLICY,
  recordSha256,
  ScriptedNetwork,
  type ScriptedProvider,
  scriptedProvider,
  sealedResponse,
} from './scripted-network.js';

const CANARY = 'a prompt that nobody else reads';
const PATH = `${BASE_URL}/v1/chat/completions`;

/** The only provider of many networks below, because verification does not depend on the number of candidates. */
const ONLY = scriptedProvider();

interface Setup {
  readonly network?: ScriptedNetwork;
  readonly policy?: PolicyInput;
  readonly store?: Store;
  readonly now?: () => number;
}

function setup({ network = new ScriptedNetwork(hello, 1), policy = POLICY, store = memoryStore(), now = () => NOW }: Setup = {}) {
  const fetch = createVerifiedFetch({ baseURL: BASE_URL, policy, store, fetch: network.fetch, now });
  const post = (stream = false, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(PATH, {
      method: 'POST',
      headers: { authorization: 'Bearer sk-test', ...headers },
      body: JSON.stringify({ model: MODEL, stream, messages: [{ role: 'user', content: CANARY }] }),
    });
  return { network, fetch, post };
}

/** Sends a plain request, and returns the code of the refusal: an HTTP error in the SDK's format, without content of the response. */
async function refusalOf(configuration: Setup): Promise<E2ERefusalCode> {
  const { network, post } = setup(configuration);
  const response = await post();
  const verdict = verdictOf(response);
  expect(verdict).toMatchObject({ state: 'refused' });
  const refusal = verdict?.state === 'refused' ? verdict.refusal : null;
  expect(response.status).toBeGreaterThanOrEqual(400);
  if (refusal?.code !== 'coordinator_said') expect(response.headers.get('x-should-retry')).toBe('false');
  const body = await response.text();
  expect(JSON.parse(body)).toMatchObject({ error: { code: refusal?.code, message: refusal?.message } });
  expect(body).not.toContain('Hello');
  requireNoPlaintext(network);
  return refusal?.code as E2ERefusalCode;
}

function requireNoPlaintext(network: ScriptedNetwork): void {
  for (const { url, init } of network.received) {
    const body = init.body instanceof Uint8Array ? new TextDecoder('latin1').decode(init.body) : String(init.body ?? '');
    expect(`${url}${JSON.stringify(init.headers)}${body}`).not.toContain(CANARY);
    expect(init.redirect).toBe('manual');
  }
}

/** A network with one provider, after a change to this provider. */
function networkOf(change: (provider: ScriptedProvider) => void, provider = scriptedProvider()): ScriptedNetwork {
  change(provider);
  return new ScriptedNetwork(hello, 1, [provider]);
}

/** Changes the attestation record of the only provider, and its hash in the keyset. */
function changedRecord(change: (provider: ScriptedProvider) => ScriptedProvider['record']) {
  return networkOf((provider) => {
    provider.record = change(provider);
    provider.entry.record_sha256 = recordSha256(provider.record);
  });
}

describe('keys and evidence', () => {
  const otherKey = generateSealingKeyPair().publicKey;
  const otherKeyId = sha256(otherKey).slice(0, 16);

  test.each<[string, E2ERefusalCode, () => Setup]>([
    [
      "a sealing key that is not the enclave's",
      'key_unbound',
      () => ({ network: networkOf(({ entry }) => Object.assign(entry, { x25519: toBase64(otherKey), key_id: otherKeyId })) }),
    ],
    [
      'a key_id that is not the hash of the key',
      'key_unbound',
      () => ({ network: networkOf(({ entry }) => Object.assign(entry, { x25519: toBase64(otherKey) })) }),
    ],
    [
      'a record without a sealing key',
      'key_unbound',
      () => ({ network: changedRecord(({ record }) => ({ ...record, key_statement: null })) }),
    ],
    [
      'a sealing key bound to another attestation',
      'key_unbound',
      () => ({ network: networkOf(() => {}, scriptedProvider({ sealing: { attestation_sha256: '0'.repeat(64) } })) }),
    ],
    [
      'an expired sealing key',
      'stale',
      () => ({ network: networkOf(() => {}, scriptedProvider({ sealing: { not_before: NOW - 3_600_000, not_after: NOW - 1 } })) }),
    ],
    [
      'a sealing key in its last five minutes',
      'stale',
      () => ({ network: networkOf(() => {}, scriptedProvider({ sealing: { not_after: NOW + 240_000 } })) }),
    ],
    [
      'a key older than maxKeyAge',
      'stale',
      () => ({
        policy: { ...POLICY, maxKeyAge: 60_000 },
        network: networkOf(() => {}, scriptedProvider({ sealing: { not_before: NOW - 300_000 } })),
      }),
    ],
    ['an old challenge', 'stale', () => ({ network: networkOf(() => {}, scriptedProvider({ challengedAt: NOW - 3_600_000 })) })],
    ['no challenge', 'stale', () => ({ network: changedRecord(({ record }) => ({ ...record, last_challenge: null })) })],
    ['an old certificate chain', 'stale', () => ({ policy: { ...POLICY, maxChainAge: 1 } })],
    ['an old keyset', 'stale', () => ({ network: keysetNetwork((keyset) => ({ ...keyset, issued_at: NOW - 3_600_000 })) })],
    ['a keyset of the future', 'stale', () => ({ network: keysetNetwork((keyset) => ({ ...keyset, issued_at: NOW + 3_600_000 })) })],
    [
      'protections that are off',
      'revoked',
      () => ({
        network: networkOf(
          (provider) => {
            provider.record = { ...provider.record, attested: false };
            provider.entry.record_sha256 = recordSha256(provider.record);
          },
          scriptedProvider({ posture: { sip_enabled: false } }),
        ),
      }),
    ],
    ['a missed challenge', 'revoked', () => ({ network: changedRecord(({ record }) => ({ ...record, attested: false })) })],
    [
      'a claim that its evidence contradicts',
      'policy',
      () => ({ network: changedRecord(({ record }) => ({ ...record, memory_gb: 512 })) }),
    ],
    ['a simulated machine', 'policy', () => ({ network: networkOf(() => {}, scriptedProvider({ keyProtection: 'software' })) })],
    ['another enclave key than the listed ones', 'policy', () => ({ policy: { ...POLICY, enclaveKeys: ['0'.repeat(64)] } })],
    ['another serial number than the listed ones', 'policy', () => ({ policy: { ...POLICY, serials: ['C02OTHER0'] } })],
    ["a chain of an authority that is not the manufacturer's", 'policy', () => ({ policy: {} })],
    [
      'a record for this client alone',
      'targeted',
      () => {
        const network = new ScriptedNetwork(hello);
        network.recordOf = (record) => ({ ...record, status: 'elsewhere' });
        return { network };
      },
    ],
    [
      'a keyset that names a provider twice',
      'targeted',
      () => ({
        network: keysetNetwork(({ providers, ...keyset }) => ({
          ...keyset,
          providers: providers.flatMap((provider) => [provider, provider]),
        })),
      }),
    ],
    ['a keyset that shrinks', 'targeted', () => ({ policy: { ...POLICY, minCandidates: 2 }, network: new ScriptedNetwork(hello, 1) })],
    [
      'another keyset with credentials',
      'targeted',
      () => ({
        network: keysetNetwork((keyset, headers) =>
          headers.has('authorization') ? { ...keyset, providers: keyset.providers.slice(1) } : keyset,
        ),
      }),
    ],
    ['an empty keyset', 'downgraded', () => ({ network: keysetNetwork((keyset) => ({ ...keyset, providers: [] })) })],
    [
      'no log where one is required',
      'split_view',
      () => ({ policy: { ...POLICY, log: 'required', logKey: new TestSigner('log.example', 1, 'ed25519').verifierKey } }),
    ],
    [
      'a model that no provider serves',
      'no_candidates',
      () => ({ network: networkOf(({ entry }) => Object.assign(entry, { models: ['other'] })) }),
    ],
  ])('%s is refused as %s', async (_name, code, configuration) => {
    const input = configuration();
    const network = input.network ?? new ScriptedNetwork(hello);
    expect(await refusalOf({ ...input, network })).toBe(code);
    expect(network.sealedRequests).toEqual([]);
  });

  test('an anchor that turns simulated is refused as targeted', async () => {
    const network = new ScriptedNetwork(hello);
    const store = memoryStore();
    expect((await setup({ network, store }).post()).status).toBe(200);
    network.providers.splice(0, 3, scriptedProvider({ keyProtection: 'software' }));
    expect(await refusalOf({ network, store })).toBe('targeted');
    // Without POLICY, the certificates' authority is not trusted.
    network.providers.splice(0, 1, ONLY);
    expect(await refusalOf({ network, store, policy: {} })).toBe('targeted');
    expect(network.sealedRequests).toHaveLength(1);
  });

  test('a simulated network is accepted only by allowSimulated, and named as such', async () => {
    const network = new ScriptedNetwork(hello);
    network.isSimulated = true;
    const response = await setup({ network, policy: { allowSimulated: true } }).post();
    expect(verdictOf(response)).toMatchObject({ state: 'verified', provider: { evidence: 'simulated' } });
    // The error of a first program, whose policy lacks `allowSimulated`. The certificate chain is checked before the policy's evidence.
    const refused = await setup({ network, policy: { evidence: 'maker' } }).post();
    expect(await refused.json()).toMatchObject({ error: { code: 'policy', message: expect.stringMatching(/simulated.+allowSimulated/) } });
  });
});

function keysetNetwork(change: (keyset: E2eKeyset, headers: Headers) => E2eKeyset): ScriptedNetwork {
  const network = new ScriptedNetwork(hello);
  network.keyset = change;
  return network;
}

/** Changes to an otherwise correct network, for plain and streamed answers alike. */
const ANSWERS: [string, E2ERefusalCode, (network: ScriptedNetwork) => void][] = [
  [
    'a frame of which a bit changed',
    'open_failed',
    (network) => {
      network.frames = ([nonce, head, ...rest]) => [nonce, flipped(head), ...rest] as Uint8Array[];
    },
  ],
  [
    'frames in another order',
    'truncated',
    (network) => {
      network.frames = ([nonce, head, first, ...rest]) => [nonce, first, head, ...rest] as Uint8Array[];
    },
  ],
  [
    'a dropped frame',
    'truncated',
    (network) => {
      network.frames = ([nonce, head, _first, ...rest]) => [nonce, head, ...rest] as Uint8Array[];
    },
  ],
  [
    'a repeated frame',
    'open_failed',
    (network) => {
      network.frames = ([nonce, head, first, ...rest]) => [nonce, head, first, first, ...rest] as Uint8Array[];
    },
  ],
  [
    'an answer without its final frame',
    'truncated',
    (network) => {
      network.frames = (frames) => frames.slice(0, -1);
    },
  ],
  [
    'an answer cut within a frame',
    'truncated',
    (network) => {
      network.frames = (frames) => [...frames.slice(0, -1), (frames.at(-1) as Uint8Array).slice(0, -1)];
    },
  ],
  [
    'an answer of another model',
    'wrong_model',
    (network) => {
      network.changes = { receipt: { model: 'cheaper' } };
    },
  ],
  [
    'an answer of another endpoint',
    'wrong_model',
    (network) => {
      network.changes = { receipt: { endpoint: '/v1/completions' } };
    },
  ],
  [
    'a receipt of another request',
    'bad_proof',
    (network) => {
      network.changes = { receipt: { context_sha256: '0'.repeat(64) } };
    },
  ],
  [
    'a receipt of another job',
    'bad_proof',
    (network) => {
      network.changes = { receipt: { job_id: '11111111-89ab-7cde-8f01-23456789abcd' } };
    },
  ],
  [
    'a receipt of another response',
    'bad_proof',
    (network) => {
      network.changes = { receipt: { response_commitment: '0'.repeat(64) } };
    },
  ],
  [
    'a receipt with other counts',
    'bad_proof',
    (network) => {
      const usage = '{"object":"chat.completion","usage":{"prompt_tokens":9,"completion_tokens":9,"total_tokens":18}}';
      network.answer = ({ context }) => ({ body: [context.stream ? `data: ${usage}\n\n` : usage] });
      network.changes = { receipt: { usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 3 } } };
    },
  ],
  ...Object.entries({
    'an error in place of an answer': '{"error":{"message":"free text"}}',
    'an answer with an error': '{"object":"chat.completion","choices":[],"error":{"message":"free text"}}',
    'an answer of another format': '{"type":"message","content":[]}',
    'an answer that is no JSON': 'free text',
  }).map(([name, body]): [string, E2ERefusalCode, (network: ScriptedNetwork) => void] => [
    name,
    'bad_proof',
    (network) => {
      network.answer = ({ context }) => ({ body: [context.stream ? `data: ${body}\n\n` : body] });
    },
  ]),
  [
    'a body cut off',
    'truncated',
    (network) => {
      network.answer = ({ context }) => ({ body: [context.stream ? 'data: {' : '{"object":"chat.completion"'] });
    },
  ],
  [
    'a cancelled answer',
    'truncated',
    (network) => {
      network.changes = { receipt: { finish_reason: 'cancelled' } };
    },
  ],
  [
    'a signature of another hash',
    'bad_proof',
    (network) => {
      network.changes = { proof: { response_hash: '0'.repeat(64) } };
    },
  ],
  [
    'another signature',
    'bad_proof',
    (network) => {
      network.changes = { proof: { se_signature: toBase64(utf8('no signature')) } };
    },
  ],
  [
    'an abort by the coordinator',
    'coordinator_said',
    (network) => {
      network.frames = (frames) => [...frames.slice(0, 2), encodeE2eAbort({ status: 503, code: 'provider_lost', message: 'Gone.' })];
    },
  ],
  [
    'bytes after the final frame',
    'coordinator_said',
    (network) => {
      network.frames = (frames) => [...frames, e2eKeepAlive()];
    },
  ],
  [
    'injected events',
    'coordinator_said',
    (network) => {
      network.frames = ([nonce, head]) => [nonce, head, utf8('data: {"choices":[{"delta":{"content":"forged"}}]}\n\n')] as Uint8Array[];
    },
  ],
];

function flipped(frame: Uint8Array | undefined): Uint8Array {
  const copy = Uint8Array.from(frame ?? []);
  copy[8] = (copy[8] ?? 0) ^ 1;
  return copy;
}

describe('answers', () => {
  test.each(ANSWERS)('%s is refused as %s when plain', async (_name, code, change) => {
    const network = new ScriptedNetwork(hello, 1, [ONLY]);
    change(network);
    expect(await refusalOf({ network })).toBe(code);
  });

  test.each(ANSWERS)('%s is refused as %s when streamed, and never ends the stream', async (_name, code, change) => {
    const network = new ScriptedNetwork(hello, 1, [ONLY]);
    change(network);
    const { post } = setup({ network });
    const response = await post(true);
    let text = '';
    const reading = (async () => {
      for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) text += new TextDecoder().decode(chunk);
    })();
    if (response.status === 200) await expect(reading).rejects.toMatchObject({ name: 'E2ERefused', code });
    else await reading;
    expect(verdictOf(response)).toMatchObject({ state: 'refused', refusal: { code } });
    expect(text).not.toContain('[DONE]');
    expect(text).not.toContain('forged');
  });

  test('another candidate cannot answer in the place of the named one', async () => {
    const network = new ScriptedNetwork(hello);
    const relay = network.fetch;
    const { post } = setup({
      network: Object.assign(Object.create(network) as ScriptedNetwork, {
        fetch: async (input: string, init: RequestInit) => {
          const response = await relay(input, init);
          if (!input.endsWith('/v1/e2e/requests')) return response;
          const headers = new Headers(response.headers);
          headers.set('inference-e2e-recipient', '1');
          return new Response(response.body, { headers });
        },
      }),
    });
    expect(verdictOf(await post())).toMatchObject({ state: 'refused', refusal: { code: 'open_failed' } });
  });

  test('Messages and Responses streams end only once verified', async () => {
    for (const [path, body, end] of [
      ['/v1/messages', { max_tokens: 9, messages: [{ role: 'user', content: CANARY }] }, 'message_stop'],
      ['/v1/responses', { input: CANARY }, 'response.completed'],
    ] as const) {
      const network = new ScriptedNetwork(hello, 1, [ONLY]);
      network.frames = (frames) => frames.slice(0, -1);
      const { fetch } = setup({ network });
      const response = await fetch(BASE_URL + path, { method: 'POST', body: JSON.stringify({ model: MODEL, stream: true, ...body }) });
      let text = '';
      await expect(
        (async () => {
          for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) text += new TextDecoder().decode(chunk);
        })(),
      ).rejects.toMatchObject({ code: 'truncated' });
      expect(text).toContain('Hello');
      expect(text).not.toContain(end);
    }
  });
});

describe('a signed stream', () => {
  const MESSAGES = ['/v1/messages', { max_tokens: 9, messages: [{ role: 'user', content: CANARY }] }] as const;
  const CHAT = ['/v1/chat/completions', { messages: [{ role: 'user', content: CANARY }] }] as const;
  const CHUNK = 'data: {"choices":[]}\n\n';

  test.each([
    ['with a terminator of its own', 'bad_proof', CHAT, [CHUNK, 'data: [DONE]\n\n', CHUNK]],
    ['with a comment', 'bad_proof', CHAT, [CHUNK, ': inference-signature {}\n\n']],
    ['with an error in its data', 'bad_proof', CHAT, [CHUNK, 'data: {"error":{"message":"free text"}}\n\n']],
    ['with data that is no JSON', 'bad_proof', CHAT, [CHUNK, 'data: free text\n\n']],
    ['with its last event under another name', 'bad_proof', MESSAGES, ['event: ping\ndata: {"type":"message_stop"}\n\n']],
    ['with its last event without a name', 'bad_proof', MESSAGES, ['data: {"type":"message_stop"}\n\n']],
    ['that ends within an event', 'truncated', CHAT, [CHUNK, 'data: {"choices":[]}\n']],
    ['without its last event', 'truncated', MESSAGES, ['event: ping\ndata: {"type":"ping"}\n\n']],
    [
      'that continues after its last event',
      'bad_proof',
      MESSAGES,
      ['event: message_stop\ndata: {"type":"message_stop"}\n\n', 'event: ping\ndata: {"type":"ping"}\n\n'],
    ],
  ] as const)('%s is refused as %s, and never ends', async (_name, code, [path, members], body) => {
    const network = new ScriptedNetwork(() => ({ body }), 1, [ONLY]);
    const { fetch } = setup({ network });
    const response = await fetch(BASE_URL + path, { method: 'POST', body: JSON.stringify({ model: MODEL, stream: true, ...members }) });
    let text = '';
    await expect(
      (async () => {
        for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) text += new TextDecoder().decode(chunk);
      })(),
    ).rejects.toMatchObject({ name: 'E2ERefused', code });
    expect(verdictOf(response)).toMatchObject({ state: 'refused', refusal: { code } });
    expect(text).not.toMatch(/\[DONE\]|message_stop|inference-signature/);
  });
});

describe('the coordinator', () => {
  test.each<[string, E2ERefusalCode, () => Response]>([
    ['a plain answer', 'downgraded', () => Response.json({ choices: [{ message: { content: 'Hello' } }] })],
    ['a redirect', 'downgraded', () => new Response(null, { status: 307, headers: { location: 'https://elsewhere.invalid' } })],
    ['a 404', 'downgraded', () => new Response('not found', { status: 404 })],
    ['a sealed answer of nobody', 'downgraded', () => sealedResponse([], 7)],
    ['an empty sealed answer', 'truncated', () => sealedResponse([], 0)],
    ['an error', 'coordinator_said', () => Response.json({ error: { message: 'Too many.' } }, { status: 429 })],
  ])('%s is refused as %s', async (_name, code, instead) => {
    const network = new ScriptedNetwork(hello, 1, [ONLY]);
    network.instead = instead;
    expect(await refusalOf({ network })).toBe(code);
  });

  test.each([
    ['a 404', () => new Response(null, { status: 404 })],
    ['a redirect', () => new Response(null, { status: 302, headers: { location: 'https://elsewhere.invalid' } })],
    ['a page', () => new Response('<html>')],
  ])('%s in place of the keyset is refused as downgraded', async (_name, keyset) => {
    const network = new ScriptedNetwork(hello, 1, [ONLY]);
    network.everywhere = ({ pathname }) => (pathname === '/v1/e2e/keyset' ? keyset() : null);
    expect(await refusalOf({ network })).toBe('downgraded');
  });

  test('keeps its status and retry headers, so that an SDK repeats the request', async () => {
    const network = new ScriptedNetwork(hello, 1, [ONLY]);
    let attempts = 0;
    network.instead = () => {
      attempts += 1;
      return attempts > 1 ? null : Response.json({ error: { message: 'Busy.' } }, { status: 503, headers: { 'retry-after': '0' } });
    };
    const fetch = createVerifiedFetch({ baseURL: BASE_URL, policy: POLICY, fetch: network.fetch, now: () => NOW });
    const client = new OpenAI({ baseURL: `${BASE_URL}/v1`, apiKey: 'k', fetch });
    const answer = await client.chat.completions.create({ model: MODEL, messages: [{ role: 'user', content: CANARY }] });
    expect(answer.choices[0]?.message.content).toBe('Hello');
    expect(attempts).toBe(2);
  });

  test('is not asked again by an SDK after a local refusal', async () => {
    const network = new ScriptedNetwork(hello, 1, [ONLY]);
    network.changes = { receipt: { model: 'cheaper' } };
    const fetch = createVerifiedFetch({ baseURL: BASE_URL, policy: POLICY, fetch: network.fetch, now: () => NOW });
    const client = new OpenAI({ baseURL: `${BASE_URL}/v1`, apiKey: 'k', fetch });
    const error: unknown = await client.chat.completions
      .create({ model: MODEL, messages: [{ role: 'user', content: CANARY }] })
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(APIError);
    expect(error).toMatchObject({ status: 403, code: 'wrong_model' });
    expect(network.sealedRequests).toHaveLength(1);
  });

  test('gets a request sealed again, once, when a key is stale', async () => {
    const network = new ScriptedNetwork(hello, 1, [ONLY]);
    const stale = () => new Response('{}', { status: 422, headers: { 'content-type': 'application/problem+json' } });
    let attempts = 0;
    network.instead = () => (attempts++ === 0 ? stale() : null);
    expect(verdictOf(await setup({ network }).post())).toMatchObject({ state: 'verified' });
    const [first, second] = network.sealedRequests;
    expect(first).not.toEqual(second);
    network.instead = stale;
    expect(await refusalOf({ network })).toBe('coordinator_said');
    expect(network.sealedRequests).toHaveLength(4);
  });
});

describe('requests', () => {
  test.each([
    ['another path', '/v1/files', { method: 'POST', body: CANARY }],
    ['another method', '/v1/chat/completions', { method: 'PUT', body: CANARY }],
    ['a deletion', '/v1/files/1', { method: 'DELETE' }],
  ])('%s rejects as not_sealable and sends nothing', async (_name, path, init) => {
    const { network, fetch } = setup();
    await expect(fetch(BASE_URL + path, init)).rejects.toMatchObject({ name: 'E2ERefused', code: 'not_sealable' });
    expect(network.received).toEqual([]);
  });

  test('another origin rejects as not_sealable, also by GET', async () => {
    const { network, fetch } = setup();
    await expect(fetch('https://elsewhere.invalid/v1/models')).rejects.toBeInstanceOf(E2ERefused);
    await expect(fetch('http://coordinator.invalid/v1/models')).rejects.toBeInstanceOf(E2ERefused);
    expect(network.received).toEqual([]);
  });

  test('an invalid request is answered as in plain mode, and sends nothing', async () => {
    const { network, fetch } = setup();
    const response = await fetch(PATH, { method: 'POST', body: JSON.stringify({ model: MODEL, messages: 'no list' }) });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { param: 'messages', type: 'invalid_request_error' } });
    expect(verdictOf(response)).toMatchObject({ state: 'refused', refusal: { code: 'not_sealable' } });
    expect(network.received).toEqual([]);
  });

  test.each([
    ['provider', { provider: { only: ['SERIAL'] } }],
    ['models', { models: ['other'] }],
  ])('%s is refused: the policy chooses providers', async (param, members) => {
    const { network, fetch } = setup();
    const body = JSON.stringify({ model: MODEL, messages: [{ role: 'user', content: CANARY }], ...members });
    const response = await fetch(PATH, { method: 'POST', body });
    expect([response.status, await response.json()]).toMatchObject([400, { error: { param } }]);
    expect(network.received).toEqual([]);
  });

  test('several choices are refused before anything is sent', async () => {
    const { network, fetch } = setup();
    const body = JSON.stringify({ model: MODEL, messages: [{ role: 'user', content: CANARY }], n: 2 });
    expect(await (await fetch(PATH, { method: 'POST', body })).json()).toMatchObject({
      error: { param: 'n', message: 'n must be 1 in end-to-end mode.' },
    });
    expect(network.received).toEqual([]);
  });

  test('images by URL are refused before anything is sent', async () => {
    const { network, fetch } = setup();
    const body = JSON.stringify({ model: MODEL, prompt: CANARY, response_format: 'url' });
    const response = await fetch(`${BASE_URL}/v1/images/generations`, { method: 'POST', body });
    expect(await response.json()).toMatchObject({ error: { param: 'response_format' } });
    expect(network.received).toEqual([]);
  });

  test("a provider's refusal is its own error, verified", async () => {
    const network = new ScriptedNetwork(() => ({
      head: { status: 400, content_type: 'application/json', headers: { 'x-should-retry': 'false' } },
      body: [JSON.stringify({ error: { message: 'Too long.', type: 'invalid_request_error', param: 'messages', code: null } })],
    }));
    const response = await setup({ network }).post();
    expect(response.status).toBe(400);
    expect(verdictOf(response)).toMatchObject({ state: 'verified', receipt: { finish_reason: 'refused' } });
  });

  test.each<[number, string]>([
    ...[201, 204, 205, 206, 299, 302, 304, 399].map((status): [number, string] => [status, 'application/json']),
    [200, 'application/json; charset=utf-7'],
    [200, 'text/html'],
    [200, 'text/event-stream'],
    [400, 'text/event-stream'],
  ])('an answer whose sealed head has the status %d and the type %s is refused as bad_proof', async (status, content_type) => {
    const body = [JSON.stringify({ error: { message: 'free text' } })];
    const network = new ScriptedNetwork(() => ({ head: { status, content_type }, body }), 1, [ONLY]);
    expect(await refusalOf({ network })).toBe('bad_proof');
  });

  test('the refusal of a receipt that contradicts itself names the contradiction as its cause', async () => {
    const network = new ScriptedNetwork(hello, 1, [ONLY]);
    network.changes = { receipt: { finish_reason: 'refused' } };
    const verdict = verdictOf(await setup({ network }).post());
    expect(verdict).toMatchObject({ state: 'refused', refusal: { code: 'bad_proof' } });
    const cause = verdict?.state === 'refused' ? verdict.refusal.cause : null;
    expect(cause).toMatchObject({ name: 'StatementError', message: expect.stringContaining('/usage is no member of a refusal') });
  });

  test('an aborted request rejects as the caller aborted it', async () => {
    const { fetch } = setup();
    const signal = AbortSignal.abort();
    await expect(fetch(PATH, { method: 'POST', body: '{}', signal })).rejects.toMatchObject({ name: 'AbortError' });
  });

  /** A transport whose responses stall after the first bytes. `noticed`: whether the client cancelled the response. */
  function stuckTransport() {
    const network = new ScriptedNetwork(hello, 1, [ONLY]);
    const noticed = { isCancelled: false };
    const transport = async (input: string, init: RequestInit): Promise<Response> => {
      const response = await network.fetch(input, init);
      if (!input.endsWith('/v1/e2e/requests')) return response;
      const bytes = new Uint8Array(await response.arrayBuffer()).subarray(0, 1200);
      const body = new ReadableStream<Uint8Array>({
        start: (controller) => {
          controller.enqueue(bytes);
          init.signal?.addEventListener('abort', () => controller.error(init.signal?.reason));
        },
        cancel: () => {
          noticed.isCancelled = true;
        },
      });
      return new Response(body, { headers: response.headers });
    };
    const fetch = createVerifiedFetch({ baseURL: BASE_URL, policy: POLICY, now: () => NOW, fetch: transport });
    const post = (stream: boolean, signal?: AbortSignal): Promise<Response> =>
      fetch(PATH, {
        method: 'POST',
        body: JSON.stringify({ model: MODEL, stream, messages: [{ role: 'user', content: CANARY }] }),
        ...(signal === undefined ? {} : { signal }),
      });
    return { post, noticed };
  }

  test('a caller that leaves a stream cancels the relay', async () => {
    const { post, noticed } = stuckTransport();
    const response = await post(true);
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    expect(new TextDecoder().decode((await reader.read()).value)).toContain('Hel');
    await reader.cancel();
    expect(noticed.isCancelled).toBe(true);
    expect(verdictOf(response)).toMatchObject({ state: 'refused', refusal: { code: 'truncated' } });
  });

  test('an aborted stream ends at once, also while nobody reads, with the reason of the caller', async () => {
    const { post } = stuckTransport();
    const leaving = new AbortController();
    const response = await post(true, leaving.signal);
    const reason = new Error('the caller has seen enough');
    leaving.abort(reason);
    expect(verdictOf(response)).toMatchObject({ state: 'refused', refusal: { code: 'truncated' } });
    await expect(response.text()).rejects.toBe(reason);
  });

  test('an aborted plain request rejects with the reason of the caller', async () => {
    const { post } = stuckTransport();
    const leaving = new AbortController();
    const reason = new Error('the caller has seen enough');
    const answered = post(false, leaving.signal);
    leaving.abort(reason);
    await expect(answered).rejects.toBe(reason);
  });
});
