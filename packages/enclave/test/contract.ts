/**
 * Contract of an enclave helper as a test suite. Runs against the simulated helper, and the Swift helper if built, so that the two
 * agree.
 */
import { createHash, randomBytes } from 'node:crypto';
import { chmod, cp, mkdir, readdir, readFile, rename, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  fromBase64,
  openAttestation,
  openChallengeAnswer,
  openE2eReceipt,
  openKeyStatement,
  openReceipt,
  type SignedStatement,
  toHex,
  utf8,
} from '@inference/protocol';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { RawHelper, type Reply } from './raw-helper.js';
import { e2eReceiptDraft, keyRequest, makeDirectory, nonce, receiptDraft, removeDirectory, verifyP256, withDirectory } from './samples.js';

/** Command line of the helper for a data directory. */
export type HelperCommand = (dataDir: string) => readonly string[];

const asStatement = (reply: Reply) => {
  expect(reply.error).toBeUndefined();
  return reply as unknown as SignedStatement;
};

export function describeHelperContract(name: string, command: HelperCommand): void {
  describe(`${name}: statements`, () => {
    let helper: RawHelper;
    let publicKey: Uint8Array;
    let secureEnclave: boolean;
    let directory: string;

    beforeAll(async () => {
      directory = await makeDirectory();
      helper = new RawHelper(command(directory));
      const identity = await helper.request('identity');
      publicKey = fromBase64(identity.se_public_key as string);
      secureEnclave = identity.secure_enclave as boolean;
    });
    afterAll(async () => {
      await helper[Symbol.asyncDispose]();
      await removeDirectory(directory);
    });

    it('answers hello and identity consistently', async () => {
      const hello = await helper.request('hello');
      expect(hello).toMatchObject({ ok: true, contract: 1, version: expect.any(String) });
      const identity = await helper.request('identity');
      expect(publicKey).toHaveLength(65);
      expect(publicKey[0]).toBe(4);
      expect(identity.secure_enclave).toBe(hello.kind === 'secure_enclave');
      expect(identity.key_protection).toBe(hello.kind === 'secure_enclave' ? 'file' : 'software');
    });

    it('attests the machine', async () => {
      const agent = { version: '1.2.3', sha256: 'c'.repeat(64) };
      const before = Date.now();
      const { value } = openAttestation(asStatement(await helper.request('attest', { agent })), publicKey, verifyP256);
      expect(value.agent).toEqual(agent);
      expect(fromBase64(value.se_public_key)).toEqual(publicKey);
      expect(value.posture.secure_enclave).toBe(secureEnclave);
      expect(value.issued_at).toBeGreaterThanOrEqual(before);
      expect(value.issued_at).toBeLessThanOrEqual(Date.now());
      expect(Object.keys(value.agent)).toEqual(['sha256', 'version']);
    });

    it('answers a challenge with nonce, session and posture', async () => {
      const asked = { nonce: nonce(), session_id: 'session-1' };
      const { value } = openChallengeAnswer(asStatement(await helper.request('answer_challenge', asked)), publicKey, verifyP256);
      expect(value).toMatchObject({ v: 1, ...asked, posture: { secure_enclave: secureEnclave } });
      expect(Math.abs(value.issued_at - Date.now())).toBeLessThan(10_000);
    });

    it('binds a sealing key, deriving the ids itself', async () => {
      const asked = keyRequest();
      const { value } = openKeyStatement(asStatement(await helper.request('sign_key', asked)), publicKey, verifyP256);
      const keyId = createHash('sha256').update(fromBase64(asked.x25519_public_key)).digest('hex').slice(0, 16);
      expect(value).toEqual({ v: 1, provider_id: sha256Hex(publicKey).slice(0, 32), key_id: keyId, ...asked });
    });

    it('signs the engine and model of an answer, in receipts of version 2', async () => {
      expect((await helper.request('hello')).receipts).toEqual([2, 1]);
      for (const computed of [
        { engine: 'x' },
        {
          engine: 'llama.cpp b1234 metal (node-llama-cpp 3.14.2)',
          weights_sha256: 'a'.repeat(64),
          template_sha256: 'b'.repeat(64),
          sampling: {
            ...{ temperature: '0.7', top_p: '0', top_k: '40', min_p: '0.05' },
            ...{ seed: '-9223372036854775808', frequency_penalty: '-2', presence_penalty: '1.5', repetition_penalty: '1.1' },
          },
        },
      ]) {
        const receipt = receiptDraft({ v: 2, ...computed });
        const reply = await helper.request('sign_response', { receipt });
        expect(openReceipt(reply.receipt as SignedStatement, publicKey, verifyP256).value).toMatchObject(receipt);
      }
    });

    it("signs the response hash over its digits, and the receipt with the helper's identity", async () => {
      const receipt = receiptDraft();
      const reply = await helper.request('sign_response', { receipt });
      expect(reply.error).toBeUndefined();
      const signature = fromBase64(reply.signature as string);
      expect(verifyP256(publicKey, utf8(receipt.response_sha256), signature)).toBe(true);
      const { value } = openReceipt(reply.receipt as SignedStatement, publicKey, verifyP256);
      const keyHash = sha256Hex(publicKey);
      expect(value).toEqual({ ...receipt, provider_id: keyHash.slice(0, 32), se_key_sha256: keyHash });
    });

    it('signs both hashes of an end-to-end response over their digits, and its receipt in a domain of its own', async () => {
      expect((await helper.request('hello')).e2e_receipts).toEqual([1]);
      const responseSha256 = randomBytes(32).toString('hex');
      const images = { endpoint: '/v1/images/generations', image_commitments: ['e'.repeat(64)] };
      for (const changes of [{}, images, { finish_reason: 'refused', usage: undefined, engine: undefined, hidden_tokens: 0 }]) {
        const receipt = JSON.parse(JSON.stringify(e2eReceiptDraft(changes))) as ReturnType<typeof e2eReceiptDraft>;
        const reply = await helper.request('sign_e2e_response', { response_sha256: responseSha256, receipt });
        expect(reply.error).toBeUndefined();
        expect(verifyP256(publicKey, utf8(responseSha256), fromBase64(reply.signature as string))).toBe(true);
        const sealedSignature = fromBase64(reply.sealed_signature as string);
        expect(verifyP256(publicKey, utf8(receipt.sealed_response_sha256), sealedSignature)).toBe(true);
        const statement = reply.receipt as SignedStatement;
        const keyHash = sha256Hex(publicKey);
        expect(openE2eReceipt(statement, publicKey, verifyP256).value).toEqual({
          ...receipt,
          provider_id: keyHash.slice(0, 32),
          se_key_sha256: keyHash,
        });
        expect(() => openReceipt(statement, publicKey, verifyP256)).toThrow();
      }
    });

    it.each<[string, object]>([
      ['a refusal with usage', { finish_reason: 'refused', hidden_tokens: 0 }],
      ['an answer without usage', { usage: undefined }],
      ['an answer without engine', { engine: undefined }],
      ['a refusal with hidden tokens', { finish_reason: 'refused', usage: undefined, hidden_tokens: 1 }],
      ['more hidden tokens than tokens', { hidden_tokens: 23 }],
      ['usage that does not add up', { usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 3 }, hidden_tokens: 0 }],
      ['an end before the start', { completed_at: 1 }],
      ['version 2', { v: 2 }],
      ['a plaintext hash as member', { response_sha256: 'a'.repeat(64) }],
      ['a short commitment', { response_commitment: 'a'.repeat(63) }],
      ['five images', { image_commitments: Array(5).fill('a'.repeat(64)) }],
      ['the identity of a signer', { provider_id: 'a'.repeat(32) }],
    ])('refuses an end-to-end receipt with %s', async (_, changes) => {
      const request = { response_sha256: 'a'.repeat(64), receipt: e2eReceiptDraft(changes) };
      expect(await helper.request('sign_e2e_response', request)).toMatchObject({ ok: false, error: { code: 'bad_request' } });
    });

    it('omits members that the draft omits', async () => {
      const { client_nonce: _, ...receipt } = receiptDraft({ overrides: {}, hidden_tokens: 0 });
      const reply = await helper.request('sign_response', { receipt });
      const { value } = openReceipt(reply.receipt as SignedStatement, publicKey, verifyP256);
      expect(value).not.toHaveProperty('client_nonce');
      expect(value.overrides).toEqual({});
    });

    it('signs hashes and addresses of images', async () => {
      const receipt = receiptDraft({
        endpoint: '/v1/images/generations',
        overrides: { image_urls: ["https://a.example:8443/v1/images/files/Ab-_~.!$&'()*+,;=%20@[]?x=1#y", 'http://b/1'] },
        image_sha256: ['c'.repeat(64), 'd'.repeat(64)],
        usage: { prompt_tokens: 11, completion_tokens: 0, total_tokens: 11, images: 2 },
        hidden_tokens: 0,
      });
      const reply = await helper.request('sign_response', { receipt });
      expect(reply.error).toBeUndefined();
      expect(openReceipt(reply.receipt as SignedStatement, publicKey, verifyP256).value).toMatchObject(receipt);
    });

    it('signs the hashes of fetched images', async () => {
      const receipt = receiptDraft({ overrides: { fetched_images: Array(20).fill('e'.repeat(64)) } });
      const reply = await helper.request('sign_response', { receipt });
      expect(openReceipt(reply.receipt as SignedStatement, publicKey, verifyP256).value).toMatchObject(receipt);
    });

    it.each([
      ['quotes and backslashes', 'a"b\\c/d'],
      ['control characters', '\u0000\u0001\b\t\n\u000b\f\r\u001f\u007f\u0080'],
      ['letters beyond ASCII', 'é ß Ж 東京 \u2028\u2029 \ufeff'],
      ['characters beyond the basic plane', '😀 𝒳 \u{10ffff}'],
      ['combining marks, unnormalised', 'e\u0301 and \u00e9'],
    ])('writes %s as RFC 8785 says', async (_, text) => {
      const asked = { nonce: nonce(), session_id: text };
      const { value } = openChallengeAnswer(asStatement(await helper.request('answer_challenge', asked)), publicKey, verifyP256);
      expect(value.session_id).toBe(text);
    });

    it('reads escapes of every kind in requests', async () => {
      helper.write(`{"id":5,"op":"answer_challenge","nonce":"${nonce()}","session_id":"\\u00e9\\ud83d\\ude00\\/\\b\\f\\n\\r\\t\\"\\\\"}\n`);
      const { value } = openChallengeAnswer(asStatement(await helper.next()), publicKey, verifyP256);
      expect(value.session_id).toBe('é😀/\b\f\n\r\t"\\');
    });

    it('signs the same way for the largest whole number', async () => {
      const max = Number.MAX_SAFE_INTEGER;
      const receipt = receiptDraft({ usage: { prompt_tokens: max, completion_tokens: 0, total_tokens: max }, hidden_tokens: 0 });
      const reply = await helper.request('sign_response', { receipt });
      expect(openReceipt(reply.receipt as SignedStatement, publicKey, verifyP256).value.usage.total_tokens).toBe(max);
    });

    const draft = receiptDraft();
    const computed = { ...draft, v: 2, engine: 'llama.cpp b1 cpu' };
    const sampled = (sampling: object) => ({ receipt: { ...computed, sampling } });
    const refused: [string, string, object][] = [
      ['attest', 'no agent', {}],
      ['attest', 'an agent without version', { agent: {} }],
      ['attest', 'an empty version', { agent: { version: '' } }],
      ['attest', 'a version of 129 characters', { agent: { version: 'v'.repeat(129) } }],
      ['attest', 'an upper-case agent hash', { agent: { version: '1', sha256: 'A'.repeat(64) } }],
      ['attest', 'a short agent hash', { agent: { version: '1', sha256: 'a'.repeat(63) } }],
      ['attest', 'an unknown member in the agent', { agent: { version: '1', trust: 'hardware' } }],
      ['attest', 'a posture of the caller', { agent: { version: '1' }, posture: { sip_enabled: true } }],
      ['answer_challenge', 'a nonce of 31 bytes', { nonce: randomBytes(31).toString('base64'), session_id: 's' }],
      ['answer_challenge', 'a nonce of 33 bytes', { nonce: randomBytes(33).toString('base64'), session_id: 's' }],
      ['answer_challenge', 'a nonce in base64url', { nonce: '-'.repeat(43).concat('='), session_id: 's' }],
      ['answer_challenge', 'a nonce that is not canonical', { nonce: `${'A'.repeat(42)}B=`, session_id: 's' }],
      ['answer_challenge', 'a nonce that is no string', { nonce: 12, session_id: 's' }],
      ['answer_challenge', 'no session', { nonce: nonce() }],
      ['answer_challenge', 'an empty session', { nonce: nonce(), session_id: '' }],
      ['answer_challenge', 'a session of 65 characters', { nonce: nonce(), session_id: 's'.repeat(65) }],
      ['answer_challenge', 'an unknown member', { nonce: nonce(), session_id: 's', posture: {} }],
      ['sign_key', 'a key of 31 bytes', { ...keyRequest(), x25519_public_key: randomBytes(31).toString('base64') }],
      ['sign_key', 'a key that is not canonical base64', { ...keyRequest(), x25519_public_key: `${'A'.repeat(42)}B=` }],
      ['sign_key', 'a life over 60 minutes', lifetime(0, 3_600_001)],
      ['sign_key', 'a life of nothing', lifetime(0, 0)],
      ['sign_key', 'a life that ends before it begins', lifetime(1_000, 0)],
      ['sign_key', 'a life that begins in the future', lifetime(600_000, 1_200_000)],
      ['sign_key', 'a life that is over', lifetime(-3_600_000, -1)],
      ['sign_key', 'a time that is not whole', { ...keyRequest(), not_before: Date.now() + 0.5 }],
      ['sign_key', 'a time that is text', { ...keyRequest(), not_before: String(Date.now()) }],
      ['sign_key', 'a time that is true', { ...keyRequest(), not_before: true }],
      ['sign_key', 'a negative time', { ...keyRequest(), not_before: -1, not_after: 1 }],
      ['sign_key', 'an attestation hash that is short', { ...keyRequest(), attestation_sha256: 'a'.repeat(62) }],
      ['sign_key', 'a provider id of the caller', { ...keyRequest(), provider_id: 'a'.repeat(32) }],
      ['sign_response', 'no receipt', {}],
      ['sign_response', 'a receipt that is a list', { receipt: [draft] }],
      ['sign_response', 'a receipt that is null', { receipt: null }],
      ['sign_response', 'another version', { receipt: { ...draft, v: 2 } }],
      ['sign_response', 'version 3', { receipt: { ...computed, v: 3 } }],
      ['sign_response', 'an engine in version 1', { receipt: { ...draft, engine: 'llama.cpp' } }],
      ['sign_response', 'a hash of weights in version 1', { receipt: { ...draft, weights_sha256: 'a'.repeat(64) } }],
      ['sign_response', 'an empty engine', { receipt: { ...computed, engine: '' } }],
      ['sign_response', 'an engine of 129 characters', { receipt: { ...computed, engine: 'e'.repeat(129) } }],
      ['sign_response', 'an engine with a line feed', { receipt: { ...computed, engine: 'llama\n' } }],
      ['sign_response', 'an engine in quotes', { receipt: { ...computed, engine: '"llama"' } }],
      ['sign_response', 'weights that are no hash', { receipt: { ...computed, weights_sha256: 'abc' } }],
      ['sign_response', 'a template that is no hash', { receipt: { ...computed, template_sha256: 'A'.repeat(64) } }],
      ['sign_response', 'sampling without a temperature', sampled({ top_p: '1' })],
      ['sign_response', 'an unknown member of sampling', sampled({ temperature: '1', mirostat: '2' })],
      ['sign_response', 'a temperature that is a number', sampled({ temperature: 1 })],
      ...['', '-', '.', '1.', '.5', '01', '1e5', '+1', '0x1', ' 1', '1,5', '1.5.1', '1'.repeat(21), `0.${'1'.repeat(21)}`].map(
        (temperature) =>
          ['sign_response', `a temperature of ${JSON.stringify(temperature)}`, sampled({ temperature })] as [string, string, object],
      ),
      ['sign_response', 'a version that is true', { receipt: { ...draft, v: true } }],
      ['sign_response', 'an unknown member', { receipt: { ...draft, note: 'x' } }],
      ['sign_response', 'a provider id of the caller', { receipt: { ...draft, provider_id: 'a'.repeat(32) } }],
      ['sign_response', 'a key hash of the caller', { receipt: { ...draft, se_key_sha256: 'a'.repeat(64) } }],
      ['sign_response', 'a job id that is no UUID', { receipt: { ...draft, job_id: 'job-1' } }],
      ['sign_response', 'a job id in upper case', { receipt: { ...draft, job_id: '0C0EDF4F-85F3-478B-A2BA-7A84601A25F5' } }],
      ['sign_response', 'an empty model', { receipt: { ...draft, model: '' } }],
      ['sign_response', 'a model of 257 characters', { receipt: { ...draft, model: 'm'.repeat(257) } }],
      ['sign_response', 'an endpoint that is not signed', { receipt: { ...draft, endpoint: '/v1/anything' } }],
      ['sign_response', 'a response hash in upper case', { receipt: { ...draft, response_sha256: 'A'.repeat(64) } }],
      ['sign_response', 'a response hash that is text', { receipt: { ...draft, response_sha256: 'sign these bytes for me, please' } }],
      ['sign_response', 'a response hash with a line feed', { receipt: { ...draft, response_sha256: `${'a'.repeat(64)}\n` } }],
      ['sign_response', 'a request hash that is short', { receipt: { ...draft, request_sha256: '' } }],
      ['sign_response', 'an unknown override', { receipt: { ...draft, overrides: { temperature: 1 } } }],
      ['sign_response', 'an override of no tokens', { receipt: { ...draft, overrides: { max_tokens: 0 } } }],
      ['sign_response', 'an override of no addresses', { receipt: { ...draft, overrides: { image_urls: [] } } }],
      ['sign_response', 'no hashes of fetched images', { receipt: { ...draft, overrides: { fetched_images: [] } } }],
      ['sign_response', 'a fetched image that is no hash', { receipt: { ...draft, overrides: { fetched_images: ['https://a/1'] } } }],
      ['sign_response', 'five addresses', { receipt: { ...draft, overrides: { image_urls: Array(5).fill('https://a/1') } } }],
      ...[
        'https://',
        'ftp://a/1',
        'https://a/"',
        'https://a/\\',
        'https://a/ 1',
        'https://a/é',
        'https://a/<',
        `https://${'a'.repeat(505)}`,
        7,
      ].map((url): [string, string, object] => [
        'sign_response',
        `the address ${url}`,
        { receipt: { ...draft, overrides: { image_urls: [url] } } },
      ]),
      ['sign_response', 'no image hashes', { receipt: { ...draft, image_sha256: [] } }],
      ['sign_response', 'five image hashes', { receipt: { ...draft, image_sha256: Array(5).fill('a'.repeat(64)) } }],
      ['sign_response', 'an image hash in upper case', { receipt: { ...draft, image_sha256: ['A'.repeat(64)] } }],
      ['sign_response', 'an image hash that is no list', { receipt: { ...draft, image_sha256: 'a'.repeat(64) } }],
      ['sign_response', 'no images', { receipt: { ...draft, usage: { ...draft.usage, images: 0 } } }],
      ['sign_response', 'five images', { receipt: { ...draft, usage: { ...draft.usage, images: 5 } } }],
      ['sign_response', 'a client nonce of 42 characters', { receipt: { ...draft, client_nonce: 'a'.repeat(42) } }],
      ['sign_response', 'a client nonce that is null', { receipt: { ...draft, client_nonce: null } }],
      ['sign_response', 'usage that does not add up', usage(1, 2, 4)],
      ['sign_response', 'negative usage', usage(-1, 2, 1)],
      ['sign_response', 'usage that is not whole', usage(1.5, 1.5, 3)],
      ['sign_response', 'usage beyond whole numbers', usage(2 ** 53, 0, 2 ** 53)],
      ['sign_response', 'an unknown member of usage', { receipt: { ...draft, usage: { ...draft.usage, cost: 1 } } }],
      ['sign_response', 'more hidden tokens than tokens', { receipt: { ...draft, hidden_tokens: 23 } }],
      ['sign_response', 'an unknown finish reason', { receipt: { ...draft, finish_reason: 'bored' } }],
      ['sign_response', 'an end before the start', { receipt: { ...draft, completed_at: draft.started_at - 1 } }],
      ['hello', 'an unknown member', { versions: [1] }],
      ['identity', 'an unknown member', { sign: 'this' }],
    ];
    it.each(refused)('%s refuses %s', async (op, _, parameters) => {
      expect(await helper.request(op, parameters)).toMatchObject({
        ok: false,
        error: { code: 'bad_request', message: expect.any(String) },
      });
    });

    it.each(Object.keys(draft).filter((member) => member !== 'client_nonce'))('refuses a receipt without %s', async (member) => {
      const receipt = Object.fromEntries(Object.entries(draft).filter(([key]) => key !== member));
      expect(await helper.request('sign_response', { receipt })).toMatchObject({ ok: false, error: { code: 'bad_request' } });
    });

    it.each(['sign', 'sign_bytes', 'export', '', '__proto__', 'constructor', 'Hello'])('knows no operation "%s"', async (op) => {
      expect(await helper.request(op, { payload: 'AAAA' })).toMatchObject({ ok: false, error: { code: 'unknown_op' } });
    });
  });

  describe(`${name}: hostile input`, () => {
    let helper: RawHelper;
    let directory: string;
    beforeAll(async () => {
      directory = await makeDirectory();
      helper = new RawHelper(command(directory));
    });
    afterAll(async () => {
      await helper[Symbol.asyncDispose]();
      await removeDirectory(directory);
    });
    // One helper serves all tests and must still answer afterwards.
    afterEach(async () => {
      expect(await helper.request('hello')).toMatchObject({ ok: true });
    });

    it.each([
      ['an empty line', ''],
      ['broken JSON', '{"id":1,"op":"hello"'],
      ['JSON and more', '{"id":1,"op":"hello"} {}'],
      ['no JSON at all', 'hello'],
      ['a list', '[{"id":1,"op":"hello"}]'],
      ['a number', '1'],
      ['null', 'null'],
      ['a comment', '{"id":1,"op":"hello"}//'],
      ['a trailing comma', '{"id":1,"op":"hello",}'],
      ['single quotes', "{'id':1,'op':'hello'}"],
      ['a raw control character in a string', '{"id":1,"op":"he\tllo"}'],
      ['a bad escape', '{"id":1,"op":"\\x68ello"}'],
      ['a number with a leading zero', '{"id":01,"op":"hello"}'],
      ['a plus sign', '{"id":+1,"op":"hello"}'],
      ['NaN', '{"id":NaN,"op":"hello"}'],
      ['a byte order mark', '\ufeff{"id":1,"op":"hello"}'],
      ['lists nested without end', '['.repeat(60_000)],
      ['objects nested without end', '{"a":'.repeat(10_000)],
      ['no id', '{"op":"hello"}'],
      ['a text id', '{"id":"1","op":"hello"}'],
      ['a negative id', '{"id":-1,"op":"hello"}'],
      ['an id that is not whole', '{"id":1.5,"op":"hello"}'],
      ['an id that is true', '{"id":true,"op":"hello"}'],
      ['an id beyond whole numbers', '{"id":9007199254740993,"op":"hello"}'],
      ['the least whole number of 64 bits as id', '{"id":-9223372036854775808,"op":"hello"}'],
      ['an id that is null', '{"id":null,"op":"hello"}'],
    ])('answers %s with an error for no id, and goes on', async (_, line) => {
      helper.write(`${line}\n`);
      expect(await helper.next()).toMatchObject({ id: null, ok: false, error: { code: 'bad_request' } });
    });

    it.each([
      ['no op', '{"id":7}', 'bad_request'],
      ['an op that is a number', '{"id":7,"op":1}', 'bad_request'],
      ['an unknown op', '{"id":7,"op":"dance"}', 'unknown_op'],
      ['a lone surrogate', `{"id":7,"op":"answer_challenge","nonce":"${nonce()}","session_id":"\\ud800"}`, 'bad_request'],
    ])('answers %s by id', async (_, line, code) => {
      helper.write(`${line}\n`);
      expect(await helper.next()).toMatchObject({ id: 7, ok: false, error: { code } });
    });

    it('refuses bytes that are not UTF-8', async () => {
      helper.write(Buffer.concat([Buffer.from('{"id":1,"op":"'), Buffer.from([0xff, 0xfe, 0xc0, 0x80]), Buffer.from('"}\n')]));
      expect(await helper.next()).toMatchObject({ id: null, ok: false, error: { code: 'bad_request' } });
    });

    it('refuses an overlong line once, without buffering', async () => {
      for (let i = 0; i < 40; i++) helper.write('x'.repeat(64 * 1024));
      helper.write('\n');
      expect(await helper.next()).toMatchObject({ id: null, ok: false, error: { code: 'bad_request' } });
    });

    it('takes a line of exactly the cap, and refuses one byte more', async () => {
      const request = '{"id":1,"op":"hello"}';
      helper.write(`${request.padEnd(64 * 1024)}\n`);
      expect(await helper.next()).toMatchObject({ id: 1, ok: true });
      helper.write(`${request.padEnd(64 * 1024 + 1)}\n`);
      expect(await helper.next()).toMatchObject({ id: null, ok: false, error: { code: 'bad_request' } });
    });

    it('puts half lines together, and takes carriage returns as white space', async () => {
      for (const piece of ['{"id"', ':1,"o', 'p":"hel', 'lo"}\r', '\n{"id":2,"op":"hello"}\n{"id"', ':3,"op":"hello"}\n']) {
        helper.write(piece);
        await new Promise((resolve) => setTimeout(resolve, 15));
      }
      for (const id of [1, 2, 3]) expect(await helper.next()).toMatchObject({ id, ok: true });
    });

    it('answers 1000 concurrent requests, each by id', async () => {
      let lines = '';
      for (let id = 1; id <= 1000; id++) {
        const receipt = receiptDraft({ model: `model-${id}` });
        lines += `${JSON.stringify(id % 100 === 0 ? { id, op: 'answer_challenge', nonce: nonce(), session_id: `s-${id}` } : { id, op: 'sign_response', receipt })}\n`;
      }
      helper.write(lines);
      const seen = new Map<number, Reply>();
      for (let i = 0; i < 1000; i++) {
        const reply = await helper.next();
        expect(reply.ok).toBe(true);
        seen.set(reply.id as number, reply);
      }
      expect(seen.size).toBe(1000);
      const payload = (statement: SignedStatement) => JSON.parse(Buffer.from(statement.payload, 'base64').toString());
      expect(payload(seen.get(123)?.receipt as SignedStatement).model).toBe('model-123');
      expect(payload(seen.get(500) as unknown as SignedStatement).session_id).toBe('s-500');
    });
  });

  describe(`${name}: key and life`, () => {
    const publicKeyOf = async (directory: string) => {
      await using helper = new RawHelper(command(directory));
      return await helper.request('identity');
    };
    const keyFileOf = async (directory: string) => {
      const files = await readdir(directory);
      expect(files).toHaveLength(1);
      return join(directory, files[0] as string);
    };

    it('creates the directory and one private key file, and reuses the key', () =>
      withDirectory(async (parent) => {
        const directory = join(parent, 'new', 'data');
        const first = await publicKeyOf(directory);
        expect(first.ok).toBe(true);
        expect((await stat(await keyFileOf(directory))).mode & 0o777).toBe(0o600);
        expect((await stat(directory)).mode & 0o777).toBe(0o700);
        expect((await publicKeyOf(directory)).se_public_key).toBe(first.se_public_key);
      }));

    it('gives concurrently started helpers the same key', () =>
      withDirectory(async (directory) => {
        const helpers = Array.from({ length: 4 }, () => new RawHelper(command(directory)));
        try {
          await Promise.all(helpers.map((helper) => helper.request('hello')));
          const keys = await Promise.all(helpers.map((helper) => helper.request('identity')));
          expect(keys.every((key) => key.ok)).toBe(true);
          expect(new Set(keys.map((key) => key.se_public_key)).size).toBe(1);
          await keyFileOf(directory);
        } finally {
          await Promise.all(helpers.map((helper) => helper[Symbol.asyncDispose]()));
        }
      }));

    let made: Promise<string> | undefined;
    const directoryWithKey = () => {
      made ??= makeDirectory().then(async (directory) => {
        expect((await publicKeyOf(directory)).ok).toBe(true);
        return directory;
      });
      return made;
    };
    afterAll(async () => {
      if (made !== undefined) await removeDirectory(await made);
    });

    const damages: [string, (file: string) => Promise<unknown>][] = [
      ['is open to the group', (file) => chmod(file, 0o640)],
      ['is open to everybody', (file) => chmod(file, 0o644)],
      ['is empty', (file) => writeFile(file, '')],
      ['is cut short', async (file) => writeFile(file, (await readFile(file)).subarray(0, 40))],
      ['is no JSON', (file) => writeFile(file, 'key')],
      [
        'holds an invalid key',
        (file) => writeFile(file, '{"v":1,"kind":"simulated","private_key_pkcs8":"AAAA","data_representation":"AAAA"}'),
      ],
      ['is huge', (file) => writeFile(file, Buffer.alloc(1_000_000))],
      [
        'is a link',
        async (file) => {
          await rename(file, `${file}.elsewhere`);
          await symlink(`${file}.elsewhere`, file);
        },
      ],
      [
        'is a directory',
        async (file) => {
          await rename(file, `${file}.elsewhere`);
          await mkdir(file, { mode: 0o700 });
        },
      ],
    ];
    it('accepts a copied key file', () =>
      withDirectory(async (parent) => {
        const directory = join(parent, 'data');
        await cp(await directoryWithKey(), directory, { recursive: true });
        expect(await publicKeyOf(directory)).toMatchObject({ ok: true });
      }));

    it.each(damages)('fails closed when the key file %s', (_, damage) =>
      withDirectory(async (parent) => {
        const directory = join(parent, 'data');
        await cp(await directoryWithKey(), directory, { recursive: true });
        const file = await keyFileOf(directory);
        await damage(file);
        const before = (await stat(file)).isFile() ? await readFile(file) : null;
        await using helper = new RawHelper(command(directory));
        expect(await helper.request('hello')).toMatchObject({ ok: true });
        expect(await helper.request('identity')).toMatchObject({ ok: false, error: { code: 'key_unavailable' } });
        expect(await helper.request('sign_response', { receipt: receiptDraft() })).toMatchObject({
          ok: false,
          error: { code: 'key_unavailable' },
        });
        if (before !== null) expect(await readFile(file)).toEqual(before);
      }),
    );

    it('says so when the directory cannot be made', () =>
      withDirectory(async (parent) => {
        await writeFile(join(parent, 'file'), '');
        const reply = await publicKeyOf(join(parent, 'file', 'data'));
        expect(reply.ok).toBe(false);
        expect(['io', 'key_unavailable']).toContain(reply.error?.code);
      }));

    it('never replies with the key', () =>
      withDirectory(async (directory) => {
        const replies: Reply[] = [];
        await using helper = new RawHelper(command(directory));
        for (const op of ['hello', 'identity']) replies.push(await helper.request(op));
        replies.push(await helper.request('attest', { agent: { version: '1' } }));
        const text = JSON.stringify(replies) + helper.stderr;
        const secret = Object.values(JSON.parse(await readFile(await keyFileOf(directory), 'utf8')) as object);
        for (const value of secret) if (typeof value === 'string' && value.length > 40) expect(text).not.toContain(value);
      }));

    it('answers pending requests and exits when stdin ends', () =>
      withDirectory(async (directory) => {
        const helper = new RawHelper(command(directory));
        helper.write('{"id":1,"op":"identity"}\n{"id":2,"op":"hello"}\n');
        const end = helper.end();
        const ids = [(await helper.next()).id, (await helper.next()).id];
        expect(ids.sort()).toEqual([1, 2]);
        expect(await end).toEqual({ code: 0, signal: null });
      }));

    it('lives through an interrupt of the terminal, and ends on SIGTERM', () =>
      withDirectory(async (directory) => {
        const helper = new RawHelper(command(directory));
        await helper.request('hello');
        helper.child.kill('SIGINT');
        helper.child.kill('SIGHUP');
        expect(await helper.request('hello')).toMatchObject({ ok: true });
        helper.child.kill('SIGTERM');
        await helper.exited;
      }));

    it('ends with a sentence on stderr when started without a data directory', async () => {
      const [program] = command('ignored');
      const args = command('ignored').slice(1, -2);
      const helper = new RawHelper([program as string, ...args]);
      expect((await helper.exited).code).toBe(1);
      expect(helper.stderr).toMatch(/--data-dir/);
    });
  });
}

function lifetime(from: number, to: number) {
  const now = Date.now();
  return { ...keyRequest(), not_before: now + from, not_after: now + to };
}

function usage(prompt_tokens: number, completion_tokens: number, total_tokens: number) {
  return { receipt: receiptDraft({ usage: { prompt_tokens, completion_tokens, total_tokens }, hidden_tokens: 0 }) };
}

function sha256Hex(bytes: Uint8Array): string {
  return toHex(createHash('sha256').update(bytes).digest());
}
