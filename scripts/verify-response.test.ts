/** Runs verify-response.sh against a small server that behaves like the service, honestly or not. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type JsonValue, toBase64, utf8 } from '@inference/protocol';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { verifyStream } from '../packages/verifier/src/verify-response.js';
import { feedOf, selfSignedRecord } from '../packages/verifier/test/published-record.js';
import { chunk, generateEnclaveKey, proofFor, sha256, signatureEvent } from '../packages/verifier/test/signed-answers.js';
import { listenLocally } from '../test/support/local-server.js';
import { runCommand } from '../test/support/run-command.js';
import { temporaryDirectory } from '../test/support/temporary-directory.js';

const SCRIPT = fileURLToPath(new URL('verify-response.sh', import.meta.url));
const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const KEEP_ALIVE = ': keep-alive\n\n';
const key = generateEnclaveKey();
const publicKey = toBase64(key.x963);
const provider = sha256(key.x963).slice(0, 32);

/** Deviations from an honest server. */
interface Behaviour {
  readonly receipt?: { readonly [member: string]: JsonValue };
  readonly headers?: { readonly [name: string]: string };
  readonly body?: (body: string) => string;
  readonly feed?: object;
  readonly status?: number;
  /** The signed body; for a stream, its last signed event. */
  readonly signed?: string;
}

/** The script compares times with this machine's clock. */
const record = selfSignedRecord({ key, now: Date.now() });
const honestFeed = () => ({ ...feedOf(), providers: [record, selfSignedRecord()] });

let behaviour: Behaviour = {};
let server: Server;
let base: string;
let folder: string;

beforeAll(async () => {
  server = createServer((request, response) => void answer(request, response));
  base = await listenLocally(server);
});
afterAll(() => new Promise((resolve) => server.close(resolve)));
beforeEach(() => {
  behaviour = {};
  folder = temporaryDirectory('verify-response');
});

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  const body = Buffer.concat(pieces);
  if (request.url === '/v1/models')
    return void response.end(JSON.stringify({ object: 'list', data: [{ id: 'pico', object: 'model', metadata: { model_type: 'text' } }] }));
  if (request.url === '/v1/providers/attestation') {
    return void response.end(JSON.stringify(behaviour.feed ?? honestFeed(), null, 1));
  }
  if (request.headers.authorization !== 'Bearer service-test') return void response.writeHead(401).end('{}');
  const asked = JSON.parse(body.toString()) as { stream?: boolean };
  const nonce = request.headers['x-inference-nonce'];
  const now = Date.now();
  const times = { started_at: now, completed_at: now };
  const members = {
    ...times,
    request_sha256: sha256(body),
    ...(typeof nonce === 'string' ? { client_nonce: nonce } : {}),
    ...behaviour.receipt,
  };
  const identity = {
    'X-Provider-Id': provider,
    'X-Provider-Chip': record.chip_name,
    'X-Provider-Serial': record.serial_number,
    'X-Provider-Trust-Level': 'self_signed',
    'X-Attestation-Se-Public-Key': publicKey,
  };
  const change = behaviour.body ?? ((text) => text);
  if (asked.stream === true) {
    const signed = [chunk(''), chunk('Grüße 😀\n: no comment\n\n'), chunk('"se_signature":"fake"'), behaviour.signed ?? ''];
    const proof = proofFor(key, utf8(signed.join('')), members);
    const text = change(`${signed.join(KEEP_ALIVE)}${KEEP_ALIVE}${signatureEvent(proof)}${KEEP_ALIVE}data: [DONE]\n\n`);
    response.writeHead(behaviour.status ?? 200, { 'Content-Type': 'text/event-stream; charset=utf-8', ...identity, ...behaviour.headers });
    response.end(text);
  } else {
    const text = behaviour.signed ?? JSON.stringify({ choices: [{ message: { role: 'assistant', content: 'Grüße 😀\n\u0000' } }] });
    const proof = proofFor(key, utf8(text), members);
    response.writeHead(behaviour.status ?? 200, {
      'Content-Type': 'application/json',
      ...identity,
      'x-response-hash': proof.responseHash,
      'X-Se-Signature': proof.signature,
      'X-Inference-Receipt': proof.receipt,
      'X-Inference-Receipt-Signature': proof.receiptSignature,
      ...behaviour.headers,
    });
    response.end(change(text));
  }
}

/** Runs the script. Returns exit code, last line and output. */
async function run(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<{ code: number; last: string; output: string }> {
  const options = { env: { ...process.env, DATA_DIR: folder, ...env }, timeout: 60_000 };
  const { code, stdout } = await runCommand('sh', [SCRIPT, ...args], options);
  return { code, last: stdout.trimEnd().split('\n').at(-1) ?? '', output: stdout };
}

const askAnyModel = (...args: string[]) => run(['--base-url', base, '--key', 'service-test', ...args]);
const ask = (...args: string[]) => askAnyModel('--model', 'pico', ...args);
const verified = expect.objectContaining({ code: 0, last: 'verified' });
const failed = (message: RegExp) => expect.objectContaining({ code: 1, last: expect.stringMatching(message) });

describe.each([
  ['plain', []],
  ['streamed', ['--stream']],
] as const)('a %s answer', (_, mode) => {
  test('is verified, and the provider named', async () => {
    const result = await askAnyModel(...mode);
    expect(result).toEqual(verified);
    expect(result.output).toMatch(/^ {2}CLAIMED Secure Enclave/m);
    expect(result.output).toContain(`answered by provider ${provider} (Apple M4 Max, trust level self_signed)`);
  });

  test('is verified with a request of the caller, and with a nonce', async () => {
    expect(
      await ask(...mode, '--nonce', '--data', '{"model":"pico", "messages":[{"role":"user","content":"ä \\" \\\\ $HOME `id`"}]}'),
    ).toEqual(verified);
  });

  test('fails with one bit of its body changed', async () => {
    expect(await ask(...mode, '--flip-byte')).toEqual(failed(/^FAILED: response hash/));
  });

  test('can be kept and verified again without the network, until someone touches a file', async () => {
    const kept = join(folder, 'kept');
    expect(await ask(...mode, '--nonce', '--save', kept)).toEqual(verified);
    const again = () => run(['--from', kept]);
    expect(await again()).toEqual(verified);
    expect(await run(['--from', kept, '--flip-byte'])).toEqual(failed(/^FAILED: response hash/));
    const tamper = async (file: string, from: string | RegExp, to: string) => {
      const path = join(kept, file);
      const before = readFileSync(path);
      const text = before.toString('latin1');
      expect(text).toMatch(from);
      writeFileSync(path, Buffer.from(text.replace(from, to), 'latin1'));
      const result = await again();
      writeFileSync(path, before);
      return result;
    };
    expect(await tamper('body.bin', /Gr/, 'gr')).toEqual(failed(/^FAILED: response hash/));
    expect(await tamper('request.json', '"pico"', '"pica"')).toEqual(failed(/^FAILED: receipt: it names another request/));
    expect(await tamper('nonce.txt', /^.*/, 'x'.repeat(43))).toEqual(failed(/^FAILED: receipt: it names another nonce/));
    expect(await tamper('path.txt', 'chat', 'talk')).toEqual(failed(/^FAILED: receipt: it names another endpoint/));
    expect(await tamper('attestation.json', '"se_public_key": "', '"se_public_key": "A')).toEqual(failed(/^FAILED: attestation feed/));
    expect(await tamper('headers.txt', /Se-Public-Key: BB?/i, 'Se-Public-Key: CC')).toEqual(failed(/^FAILED: public key/));
    expect(await again()).toEqual(verified);
  });
});

describe('a plain answer of a dishonest server', () => {
  const withStrayBits = (base64: string) => base64.replace(/.(?==+$)/, (digit) => DIGITS[DIGITS.indexOf(digit) + 1] ?? '');
  const swap = (text: string, at: number) => text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1);

  test.each<[RegExp, { readonly [name: string]: string }]>([
    [/^FAILED: response hash: missing/, { 'x-response-hash': '' }],
    [/^FAILED: response hash: missing/, { 'x-response-hash': 'A'.repeat(64) }],
    [/^FAILED: response hash: the bytes/, { 'x-response-hash': '0'.repeat(64) }],
    [/^FAILED: response signature/, { 'X-Se-Signature': '' }],
    [/^FAILED: response signature/, { 'X-Se-Signature': swap(proofFor(key, utf8('x')).signature, 40) }],
    [/^FAILED: response signature/, { 'X-Se-Signature': proofFor(key, utf8('x')).signature }],
    [/^FAILED: receipt: missing/, { 'X-Inference-Receipt': '' }],
    [/^FAILED: receipt signature/, { 'X-Inference-Receipt': swap(proofFor(key, utf8('x')).receipt, 40) }],
    [/^FAILED: receipt signature/, { 'X-Inference-Receipt-Signature': '' }],
    [/^FAILED: receipt signature/, { 'X-Inference-Receipt-Signature': proofFor(key, utf8('x')).receiptSignature }],
    // The same bytes for a lenient decoder: bits of the last digit are ignored (RFC 4648 section 3.5).
    [/^FAILED: public key/, { 'X-Attestation-Se-Public-Key': withStrayBits(publicKey) }],
  ])('%s with %j', async (message, headers) => {
    behaviour = { headers };
    expect(await ask()).toEqual(failed(message));
  });

  test.each<[RegExp, Behaviour]>([
    [/^FAILED: receipt: it names another response/, { receipt: { response_sha256: '0'.repeat(64) } }],
    [/^FAILED: receipt: it names another request/, { receipt: { request_sha256: '0'.repeat(64) } }],
    [/^FAILED: receipt: it names another enclave key/, { receipt: { se_key_sha256: '0'.repeat(64) } }],
    [/^FAILED: receipt: it names another provider/, { receipt: { provider_id: '0'.repeat(32) } }],
    [/^FAILED: receipt: it names another endpoint/, { receipt: { endpoint: '/v1/elsewhere' } }],
    [/^FAILED: provider id/, { headers: { 'X-Provider-Id': 'someone' } }],
    [/^FAILED: public key/, { headers: { 'X-Attestation-Se-Public-Key': '' } }],
    [/^FAILED: public key/, { headers: { 'X-Attestation-Se-Public-Key': toBase64(key.x963.subarray(1)) } }],
    [/^FAILED: response signature/, { headers: { 'X-Attestation-Se-Public-Key': toBase64(generateEnclaveKey().x963) } }],
    [/^FAILED: attestation feed: the key/, { feed: { providers: [] } }],
    [/^FAILED: provider headers: .* x-provider-chip/, { headers: { 'X-Provider-Chip': 'Apple M4 Ultra' } }],
    // A question mark stands for a character outside ASCII only.
    [/^FAILED: provider headers: .* x-provider-chip/, { headers: { 'X-Provider-Chip': 'Apple M4 Ultra?' } }],
    [/^FAILED: provider headers: .* x-provider-chip/, { headers: { 'X-Provider-Chip': '?' } }],
    [/^FAILED: provider headers: .* x-provider-serial/, { headers: { 'X-Provider-Serial': 'C02B' } }],
    [/^FAILED: provider headers: .* x-provider-trust-level/, { headers: { 'X-Provider-Trust-Level': 'hardware' } }],
    [/^FAILED: attestation feed: the provider/, { feed: { providers: [{ provider_id: 'x', se_public_key: publicKey }] } }],
  ])('%s', async (message, wrong) => {
    behaviour = wrong;
    expect(await ask()).toEqual(failed(message));
  });
});

test('a question mark in a header stands for a character outside ASCII of the record', async () => {
  const feed = { ...feedOf(), providers: [selfSignedRecord({ key, now: Date.now(), chipName: 'Größe 😀 M4' })] };
  behaviour = { feed, headers: { 'X-Provider-Chip': 'Gr??e ?? M4' } };
  expect(await ask()).toEqual(verified);
  behaviour = { feed, headers: { 'X-Provider-Chip': 'Gr??e ?? M5' } };
  expect(await ask()).toEqual(failed(/^FAILED: provider headers: .* x-provider-chip/));
});

test('the weights that a receipt of version 2 names are shown, and required on request', async () => {
  const weights_sha256 = 'a'.repeat(64);
  behaviour = { receipt: { v: 2, engine: 'llama.cpp b1 cpu', weights_sha256, sampling: { temperature: '0.7' } } };
  const result = await ask('--weights-sha256', weights_sha256);
  expect(result).toEqual(verified);
  expect(result.output).toContain(`computed by llama.cpp b1 cpu with weights ${weights_sha256}`);
  expect(await ask('--weights-sha256', 'b'.repeat(64))).toEqual(failed(/^FAILED: receipt: it names another hash of weights/));
  behaviour = {};
  expect(await ask('--weights-sha256', weights_sha256)).toEqual(failed(/^FAILED: receipt: it names another hash of weights/));
});

describe('the counts of a receipt', () => {
  const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
  const details = { prompt_tokens_details: { cached_tokens: 0 }, completion_tokens_details: { reasoning_tokens: 0 } };
  const noise = {
    choices: [{ message: { content: '"usage":{"prompt_tokens":9} \\" \\\\' }, usage: { prompt_tokens: 9 } }],
    usages: [1, [0.5, -1e3], {}],
  };
  const body = (value: object) => JSON.stringify({ ...noise, usage: value, after: { usage: { prompt_tokens: 9 } } });
  const event = (value: object) => `data: ${body(value)}\n\n`;
  const responses = { input_tokens: 1, output_tokens: 2, total_tokens: 3, output_tokens_details: { reasoning_tokens: 0 } };
  const message = { input_tokens: 1, cache_read_input_tokens: 0, output_tokens: 2, output_tokens_details: { thinking_tokens: 0 } };
  const start = { type: 'message_start', message: { usage: { input_tokens: 1, output_tokens: 0 } } };
  const delta = event(message).replace('{', '{"type":"message_delta",');

  test.each<[string, boolean, string, string]>([
    ['chat', false, '/v1/chat/completions', body({ ...usage, ...details })],
    ['chat, streamed', true, '/v1/chat/completions', event({ ...usage, ...details })],
    ['responses', false, '/v1/responses', body(responses)],
    [
      'responses, streamed',
      true,
      '/v1/responses',
      `data: ${JSON.stringify({ response: { usage: null } })}\n\ndata: ${JSON.stringify({ response: { usage: responses } })}\n\n`,
    ],
    ['messages', false, '/v1/messages', body(message)],
    ['messages, streamed', true, '/v1/messages', `event: message_start\ndata: ${JSON.stringify(start)}\n\nevent: message_delta\n${delta}`],
    [
      'vectors',
      false,
      '/v1/embeddings',
      `{"data":[{"embedding":[${'0.123456789,'.repeat(500)}1]}],"usage":{"prompt_tokens":1,"total_tokens":3}}`,
    ],
    ['no usage at all', false, '/v1/chat/completions', '{"choices":[]}'],
  ])('are those of the answer: %s', async (_, stream, path, signed) => {
    const mode = [...(stream ? ['--stream'] : []), '--path', path, '--data', JSON.stringify({ model: 'pico', stream })];
    behaviour = { signed, receipt: { endpoint: path } };
    expect(await ask(...mode)).toEqual(verified);
    const lies = [
      { usage: { prompt_tokens: 2, completion_tokens: 2, total_tokens: 4 } },
      { usage: { prompt_tokens: 1, completion_tokens: 3, total_tokens: 4 } },
    ];
    for (const lie of signed.includes('usage":{') && path !== '/v1/embeddings' ? [...lies, { hidden_tokens: 2 }] : []) {
      behaviour = { signed, receipt: { endpoint: path, ...lie } };
      expect(await ask(...mode)).toEqual(failed(/^FAILED: receipt usage/));
    }
  });

  test.each<[string, object, string?]>([
    ['do not add up', { usage: { ...usage, total_tokens: 4 } }],
    ['hide more than there is', { hidden_tokens: 3 }],
    ['are more than the answer holds', { usage: { prompt_tokens: 1, completion_tokens: 2000, total_tokens: 2001 } }],
    ['are more than the request holds', { usage: { prompt_tokens: 9_000_000, completion_tokens: 2, total_tokens: 9_000_002 } }],
    ['are reported with an escape', {}, '{"\\u0075sage":{"prompt_tokens":9,"completion_tokens":2}}'],
    ['are reported twice', {}, '{"usage":{"prompt_tokens":1,"completion_tokens":2},"usage":{"prompt_tokens":9,"completion_tokens":2}}'],
    ['are reported as a text', {}, '{"usage":{"prompt_tokens":"1","completion_tokens":2}}'],
    ['are reported as something else', {}, '{"usage":"much"}'],
  ])('are refused where they %s', async (_, receipt, signed) => {
    behaviour = { receipt: receipt as Record<string, JsonValue>, ...(signed === undefined ? {} : { signed }) };
    expect(await ask()).toEqual(failed(/^FAILED: receipt usage/));
  });
});

describe('a streamed answer of a dishonest server', () => {
  test.each<[string, RegExp, (body: string) => string]>([
    ['an event put in', /response hash/, (body) => chunk('more') + body],
    ['an event after the signature', /unsigned content/, (body) => body.replace('data: [DONE]', 'data: {}\n\ndata: [DONE]')],
    ['content after the end', /unsigned content/, (body) => body + chunk('more')],
    [
      'a data line joined to the signature event',
      /unsigned content/,
      (body) => body.replace(/("response_hash".*\n)\n/, '$1data: more\n\n'),
    ],
    ['content hidden in a comment', /framing/, (body) => body.replace(KEEP_ALIVE, `: x\r${chunk('more')}`)],
    ['CRLF lines', /framing/, (body) => body.replaceAll('\n', '\r\n')],
    ['no signature event', /signature event: the stream has none/, (body) => body.replace(/data: .*"response_hash".*\n\n/, '')],
    [
      'content in the signature event',
      /signature event/,
      (body) => body.replace('"choices":[],', '"choices":[{"delta":{"content":"x"}}],'),
    ],
    ['choices twice', /signature event: a member/, (body) => body.replace('"choices":[],', '"choices":[{}],"choices":[],')],
    [
      'usage in the signature event',
      /signature event: it has unsigned usage/,
      (body) => body.replace('"choices":[],', '"choices":[],"usage":{},'),
    ],
    [
      'members of other events in the signature event',
      /signature event: it has members/,
      (body) => body.replace('"choices":[],', '"choices":[],"type":"response.output_text.delta","delta":"x",'),
    ],
    [
      'a line break for some readers in the signature event',
      /signature event: it has control characters/,
      (body) => body.replace('"choices":[],', '"choices":[],"id":"\u2028data: x",'),
    ],
    [
      'another model in the signature event',
      /signature event: its model/,
      (body) => body.replace('"model":"pico","choices":[],', '"model":"better","choices":[],'),
    ],
    ['a line break for some readers in a comment', /framing/, (body) => body.replace(KEEP_ALIVE, `: x\u2028${chunk('more')}`)],
    ['a comment inside an event', /framing: a comment inside/, (body) => body.replace('\n\n', `\n${KEEP_ALIVE}\n`)],
    [
      'escapes in the signature event',
      /signature event: it has escapes/,
      (body) => body.replace('"choices":[],', '"choices":[],"\\u0075":1,'),
    ],
    ['an unfinished comment', /response hash/, (body) => body.replace(KEEP_ALIVE, `: x\n${chunk('more')}`)],
    ['an altered hash', /response hash/, (body) => body.replace(/"response_hash":"./, '"response_hash":"x')],
    ['an altered signature', /response signature/, (body) => body.replace(/"se_signature":"ME/, '"se_signature":"MF')],
    ['an altered receipt', /receipt signature/, (body) => body.replace(/"receipt":"eyJ/, '"receipt":"eyI')],
    ['an altered receipt signature', /receipt signature/, (body) => body.replace(/"receipt_signature":"ME/, '"receipt_signature":"MF')],
  ])('%s', async (_, message, body) => {
    behaviour = { body };
    const kept = join(folder, 'kept');
    expect(await ask('--stream', '--save', kept)).toEqual(failed(message));
    // The library for browsers agrees on the same bytes.
    expect(verifyStream(readFileSync(join(kept, 'body.bin')), { publicKey }).verified).toBe(false);
  });

  test('may carry its signature in a comment', async () => {
    const inComment = (text: string) => text.replace(/^data: \{.*?("se_signature":.*)$/m, ': inference-signature {$1');
    behaviour = { body: inComment };
    expect(await ask('--stream')).toEqual(verified);
    behaviour = { body: (text) => inComment(text).replace('Grüße', 'Grüsse') };
    expect(await ask('--stream')).toEqual(failed(/^FAILED: response hash/));
  });

  test('without the terminator is still signed', async () => {
    behaviour = { body: (text) => text.replace('data: [DONE]\n\n', '') };
    expect(await ask('--stream')).toEqual(verified);
  });
});

test('address, key and model come from the demo file', async () => {
  mkdirSync(join(folder, 'data'));
  writeFileSync(
    join(folder, 'data', 'demo.json'),
    JSON.stringify({ base_url: base, api_key: 'service-test', text_model: 'pico' }, null, 2),
  );
  expect(await run([], { DATA_DIR: join(folder, 'data') })).toEqual(verified);
});

test('a relative folder with an equals sign in its name is verified', async () => {
  expect(await ask('--save', join(folder, 'kept=1'))).toEqual(verified);
  expect(await runCommand('sh', [SCRIPT, '--from', 'kept=1'], { cwd: folder, timeout: 60_000 })).toMatchObject({ code: 0 });
});

test('wrong usage, a missing demo and missing files are exit 2', async () => {
  for (const args of [['--what'], ['--key'], [], ['--from', folder]]) expect(await run(args)).toMatchObject({ code: 2 });
});

describe('without an answer, nothing is verified and the exit code is 3', () => {
  const noAnswer = (message: RegExp) => expect.objectContaining({ code: 3, last: expect.stringMatching(message) });

  test('a refused connection', async () => {
    const result = await run(['--base-url', 'http://127.0.0.1:1', '--key', 'k', '--model', 'm']);
    expect(result).toEqual(noAnswer(/^NO ANSWER: could not connect to http:\/\/127\.0\.0\.1:1$/));
    expect(result.output).not.toContain('FAILED');
  });

  test('a refused connection of the model list', async () => {
    expect(await run(['--base-url', 'http://127.0.0.1:1', '--key', 'k'])).toEqual(noAnswer(/^NO ANSWER: could not connect to/));
  });

  test('an HTTP error', async () => {
    behaviour = { status: 503 };
    expect(await ask()).toEqual(noAnswer(/^NO ANSWER: HTTP status 503$/));
  });

  test('a response that ends early', async () => {
    behaviour = { headers: { 'Content-Length': '100000' } };
    expect(await ask()).toEqual(noAnswer(/^NO ANSWER: response: (?:the connection closed early|timed out)$/));
  });
});
