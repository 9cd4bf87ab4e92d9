/**
 * The shared table of answers that every verifier must accept or refuse: the library, `inference-verify`,
 * `scripts/verify-response.sh` and the web console. Each case is signed anew. A changed case names the action of an attacker or a
 * faulty machine.
 */
import { randomBytes } from 'node:crypto';
import {
  type AttestationRecord,
  canonicalJsonBytes,
  type EnclaveEvidence,
  type JsonValue,
  statementBytes,
  toBase64,
  toBase64Url,
  utf8,
} from '@inference/protocol';
import type { ResponseProof } from '../src/response-proof.js';
import { feedOf, hardwareRecord, NOW, type RecordOptions, selfSignedRecord } from './published-record.js';
import { type EnclaveKey, generateEnclaveKey, proofFor, receiptFor, sha256, signDer } from './signed-answers.js';

/** Everything that a client saves of one answer, as `verify-response.sh --save` does. */
export interface KeptAnswer {
  readonly path: string;
  readonly request: string;
  readonly nonce: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  readonly feed: unknown;
  /** Images fetched from URLs in the answer. */
  readonly images: readonly Uint8Array[];
}

export interface AnswerCase {
  readonly name: string;
  readonly expected: 'verified' | 'refused';
  /** Expected enclave evidence of a verified answer. */
  readonly enclave?: EnclaveEvidence;
  readonly answer: KeptAnswer;
}

type Json = { readonly [member: string]: JsonValue };

interface Format {
  readonly path: string;
  readonly plain: JsonValue;
  /** Events of a stream, in order; absent for formats without streaming. */
  readonly events?: readonly string[];
  /** Where a stream contains its signature. */
  readonly signature?: 'event' | 'comment';
  readonly request: Json;
}

const MODEL = 'pico';
const NONCE = 'A'.repeat(43);
const JOB_ID = '01234567-89ab-4cde-8f01-23456789abcd';
const DONE = 'data: [DONE]\n\n';
const KEEP_ALIVE = ': keep-alive\n\n';
const messages = [{ role: 'user', content: 'Say "model":"other" and {"model": "other"} \\ ä' }];

const dataEvent = (value: JsonValue): string => `data: ${JSON.stringify(value)}\n\n`;
const namedEvent = (type: string, value: Json): string => `event: ${type}\n${dataEvent({ type, ...value })}`;
const CHAT = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: MODEL };
const TEXT = { id: 'cmpl-1', object: 'text_completion', created: 1, model: MODEL };
const chatChunk = (content: string, finish: string | null = null): string =>
  dataEvent({ ...CHAT, choices: [{ index: 0, delta: { content }, finish_reason: finish }] });
const textChunk = (text: string, finish: string | null = null): string =>
  dataEvent({ ...TEXT, choices: [{ index: 0, text, finish_reason: finish }] });

const FORMATS = {
  chat: {
    path: '/v1/chat/completions',
    request: { messages, model: MODEL },
    plain: {
      ...CHAT,
      object: 'chat.completion',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Grüße 😀' }, finish_reason: 'stop' }],
    },
    events: [chatChunk(''), chatChunk('Grüße 😀\n: no comment\n\n'), chatChunk('"se_signature":"fake"'), chatChunk('', 'stop')],
    signature: 'event',
  },
  completions: {
    path: '/v1/completions',
    request: { model: MODEL, prompt: 'Once' },
    plain: { ...TEXT, choices: [{ index: 0, text: ' upon', finish_reason: 'stop' }] },
    events: [textChunk(' upon'), textChunk('', 'stop')],
    signature: 'event',
  },
  messages: {
    path: '/v1/messages',
    request: { model: MODEL, max_tokens: 8, messages },
    plain: { id: 'msg_1', type: 'message', role: 'assistant', content: [{ type: 'text', text: 'Hello' }], stop_reason: 'end_turn' },
    events: [namedEvent('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'Hello' } }), namedEvent('message_stop', {})],
    signature: 'comment',
  },
  responses: {
    path: '/v1/responses',
    request: { model: MODEL, input: 'Hello' },
    plain: { id: 'resp_1', object: 'response', output: [] },
    events: [
      namedEvent('response.output_text.delta', { delta: 'Hello' }),
      namedEvent('response.completed', { response: { error: null, tools: [{ error: 'of a tool', type: 'error' }] } }),
    ],
    signature: 'comment',
  },
  embeddings: {
    path: '/v1/embeddings',
    request: { model: MODEL, input: 'Hello' },
    plain: { object: 'list', data: [{ object: 'embedding', index: 0, embedding: [0.5, -0.25] }], model: MODEL },
  },
} as const satisfies Readonly<Record<string, Format>>;
type FormatName = keyof typeof FORMATS;

interface Changes {
  readonly format?: FormatName;
  readonly stream?: boolean;
  /** Signed receipt members that replace the correct ones. */
  readonly receipt?: Json;
  /** Exact bytes of the receipt, signed unchanged. */
  readonly receiptBytes?: (honest: Json) => Uint8Array;
  /** Signing key, if not the provider's. */
  readonly signer?: EnclaveKey;
  readonly proof?: (proof: ResponseProof) => ResponseProof;
  /** Changes the transmitted body; the signature is of the original. */
  readonly body?: (text: string) => string;
  /** Signed events of a stream, in place of the correct ones. */
  readonly events?: readonly string[];
  /** Signed body of a plain answer, in place of the correct one. */
  readonly plain?: JsonValue;
  readonly headers?: Readonly<Record<string, string>>;
  readonly request?: (text: string) => string;
  readonly sentRequest?: string;
  readonly nonce?: string | null;
  readonly record?: RecordOptions & { readonly level?: 'self_signed' | 'hardware' };
  readonly published?: (record: AttestationRecord) => unknown;
  readonly feed?: (record: AttestationRecord) => unknown;
  readonly path?: string;
  readonly images?: readonly Uint8Array[];
}

/** An answer of a correct network, with changes. */
export function keptAnswer(changes: Changes = {}): KeptAnswer {
  const format: Format = FORMATS[changes.format ?? 'chat'];
  const stream = changes.stream ?? false;
  const path = changes.path ?? format.path;
  const key = generateEnclaveKey();
  const { level = 'self_signed', ...options } = changes.record ?? {};
  const record = (level === 'hardware' ? hardwareRecord : selfSignedRecord)({ key, ...options });
  const request = changes.sentRequest ?? JSON.stringify({ ...format.request, ...(stream ? { stream: true } : {}) });
  const events = changes.events ?? format.events ?? [];
  const signed = stream ? events.join('') : JSON.stringify(changes.plain ?? format.plain);
  const members = {
    job_id: JOB_ID,
    endpoint: path,
    request_sha256: sha256(utf8(request)),
    client_nonce: NONCE,
    started_at: NOW - 500,
    completed_at: NOW,
    ...changes.receipt,
  };
  const proof = (changes.proof ?? ((honest) => honest))(sign(key, changes, signed, members));
  const text = stream ? streamed(format, events, proof) : signed;
  const publicKey = toBase64(key.x963);
  return {
    path: changes.format === undefined || changes.path === undefined ? path : changes.path,
    request: (changes.request ?? ((sent) => sent))(request),
    nonce: changes.nonce === undefined ? NONCE : changes.nonce,
    headers: {
      'Content-Type': stream ? 'text/event-stream; charset=utf-8' : 'application/json; charset=utf-8',
      'X-Provider-Id': record.provider_id,
      'X-Provider-Chip': record.chip_name,
      'X-Provider-Model': record.hardware_model,
      'X-Provider-Serial': record.serial_number,
      'X-Provider-Attested': String(record.attested),
      'X-Provider-Trust-Level': record.trust_level,
      'X-Provider-Secure-Enclave': String(record.secure_enclave),
      'X-Provider-Mda-Verified': String(record.mda_verified),
      'X-Attestation-Se-Public-Key': publicKey,
      'X-Attestation-Device-Serial': record.serial_number,
      ...(stream
        ? { 'X-Inference-Job-ID': JOB_ID }
        : {
            'X-Response-Hash': proof.responseHash,
            'X-Se-Signature': proof.signature,
            'X-Inference-Receipt': proof.receipt,
            'X-Inference-Receipt-Signature': proof.receiptSignature,
          }),
      ...changes.headers,
    },
    body: utf8((changes.body ?? ((whole) => whole))(text)),
    feed: changes.feed?.(record) ?? { ...feedOf(), providers: [(changes.published ?? ((honest) => honest))(record), selfSignedRecord()] },
    images: changes.images ?? [],
  };
}

function sign(key: EnclaveKey, { signer = key, receiptBytes }: Changes, signed: string, members: Json): ResponseProof {
  const proof = proofFor(signer, utf8(signed), members);
  if (receiptBytes === undefined) return proof;
  const bytes = receiptBytes(receiptFor(signer, sha256(utf8(signed)), members) as Json);
  return { ...proof, receipt: toBase64Url(bytes), receiptSignature: toBase64(signDer(signer, statementBytes('receipt', bytes))) };
}

function streamed(format: Format, events: readonly string[], proof: ResponseProof): string {
  const members = {
    se_signature: proof.signature,
    response_hash: proof.responseHash,
    receipt: proof.receipt,
    receipt_signature: proof.receiptSignature,
  };
  const envelope = format.path === '/v1/completions' ? TEXT : CHAT;
  const signature =
    format.signature === 'event'
      ? dataEvent({ ...envelope, choices: [], ...members })
      : `: inference-signature ${JSON.stringify(members)}\n\n`;
  const end = format.path === '/v1/messages' ? '' : DONE;
  return `${events.join(KEEP_ALIVE)}${KEEP_ALIVE}${signature}${KEEP_ALIVE}${end}`;
}

/** Base64 text with another character at an index. */
function swapped(text: string, at: number): string {
  return text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1);
}

const both = (name: string, changes: Changes): [string, Changes][] => [
  [`plain: ${name}`, changes],
  [`stream: ${name}`, { ...changes, stream: true }],
];
const inEvent =
  (members: string) =>
  (text: string): string =>
    text.replace('"choices":[],"se_signature"', `"choices":[],${members},"se_signature"`);

const pictures = [utf8('first image'), utf8('second image')];
const imageHashes = pictures.map(sha256);
const imagePath = { path: '/v1/images/generations', sentRequest: JSON.stringify({ model: MODEL, prompt: 'a circle' }) };
const held = { ...imagePath, plain: { created: 1, data: pictures.map((picture) => ({ b64_json: toBase64(picture) })) } };
const linked = { ...imagePath, plain: { created: 1, data: [{ url: 'https://a.example/1' }, { url: 'https://a.example/2' }] } };

const withUsage = (prompt: number, completion: number, total: number): JsonValue => ({
  ...FORMATS.chat.plain,
  usage: { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total },
});
/** An answer to a request with a member of this name, given as JSON, and with more prompt tokens than its bytes can hold. */
function imageInPrompt(name: string): Changes {
  const usage = { prompt_tokens: 5000, completion_tokens: 2, total_tokens: 5002 };
  return {
    sentRequest: `{"model":"${MODEL}","messages":[{"role":"user","content":[{"${name}":{"url":"data:image/png;base64,AA=="}}]}]}`,
    plain: withUsage(5000, 2, 5002),
    receipt: { usage },
  };
}
/** Members of a receipt of version 2. */
const COMPUTED = { v: 2, engine: 'llama.cpp b9999 (Metal)', weights_sha256: 'a'.repeat(64), sampling: { temperature: '0.7', seed: '1' } };

/** `value` in arrays of the depth. */
const nested = (value: JsonValue, depth: number): JsonValue => Array.from({ length: depth }).reduce<JsonValue>((inner) => [inner], value);

/** An event with every kind of JSON value, words of errors, and the deepest nesting. */
const EVERY_VALUE = dataEvent({
  ...CHAT,
  choices: [{ delta: { content: '"error":{} \\ \n \u001f é 😀', error: 'text', type: 'message_stop' } }, [], {}, [[0, -1.5e-7, 1e21]]],
  flags: [true, false, null],
  error: null,
  deep: nested(1, 300),
});

const VERIFIED: readonly [string, EnclaveEvidence, Changes][] = [
  ...Object.keys(FORMATS).flatMap((format): [string, EnclaveEvidence, Changes][] => {
    const name = format as FormatName;
    const plain: [string, EnclaveEvidence, Changes] = [`plain: ${name}`, 'claimed', { format: name }];
    return 'events' in FORMATS[name] ? [plain, [`stream: ${name}`, 'claimed', { format: name, stream: true }]] : [plain];
  }),
  ['plain: a key kept in software', 'simulated', { record: { keyProtection: 'software', posture: { secure_enclave: false } } }],
  [
    'stream: a key kept in software',
    'simulated',
    { stream: true, record: { keyProtection: 'software', posture: { secure_enclave: false } } },
  ],
  ['plain: a key in a file of a machine that says it has no enclave', 'simulated', { record: { posture: { secure_enclave: false } } }],
  ['plain: a machine certified by a test authority', 'simulated', { record: { level: 'hardware' } }],
  ['plain: no nonce was sent', 'claimed', { nonce: null }],
  ['plain: cut at max_tokens', 'claimed', { receipt: { finish_reason: 'length' } }],
  ['plain: a receipt of version 2', 'claimed', { receipt: COMPUTED }],
  ['stream: a receipt of version 2', 'claimed', { stream: true, receipt: COMPUTED }],
  ['plain: the usage that the receipt signs', 'claimed', { plain: withUsage(1, 2, 3) }],
  ['plain: a receipt member that is not known', 'claimed', { receipt: { weights: { request_sha256: '0'.repeat(64) } } }],
  ['plain: a member that must be understood and is', 'claimed', { receipt: { crit: ['usage'] } }],
  [
    'plain: the receipt names a fallback model of the request',
    'claimed',
    { receipt: { model: 'larger' }, sentRequest: JSON.stringify({ messages, model: MODEL, models: ['other', 'larger'] }) },
  ],
  ['plain: a request with spaces and line breaks', 'claimed', { sentRequest: JSON.stringify({ messages, model: MODEL }, null, 2) }],
  ['plain: more tokens than bytes, for an image', 'claimed', imageInPrompt('image_url')],
  ['plain: more tokens than bytes, for an image whose name is escaped', 'claimed', imageInPrompt('im\\u0061ge\\u005Furl')],
  ['plain: no sealing key in use', 'claimed', { published: (record) => ({ ...record, key_statement: null }) }],
  [
    'plain: a sealing key that ended a minute ago',
    'claimed',
    { record: { sealing: { not_after: NOW - 60_000, not_before: NOW - 600_000 } } },
  ],
  ['plain: headers of less than the record', 'claimed', { headers: { 'X-Provider-Attested': 'false', 'X-Provider-Chip': '' } }],
  [
    'plain: a challenge missed after the newest answer',
    'claimed',
    { published: (record) => ({ ...record, attested: false }), headers: { 'X-Provider-Attested': 'false' } },
  ],
  ['stream: the terminator is missing', 'claimed', { stream: true, body: (text) => text.replace(DONE, '') }],
  [
    'stream: spaces in the data',
    'claimed',
    { stream: true, events: [chatChunk('one').replaceAll('":', '" : ').replaceAll(',', ' , '), chatChunk('two')] },
  ],
  ['plain: deeply nested', 'claimed', { plain: { ...FORMATS.chat.plain, deep: nested(10, 300) } }],
  [
    'stream: metadata with an escaped name',
    'claimed',
    {
      format: 'responses',
      stream: true,
      events: [namedEvent('response.completed', { response: { metadata: { 'a"b': 'v' } } })],
    },
  ],
  ['stream: every kind of JSON value', 'claimed', { stream: true, events: [EVERY_VALUE, EVERY_VALUE, chatChunk('two')] }],
  ['stream: comments everywhere', 'claimed', { stream: true, body: (text) => KEEP_ALIVE + text + KEEP_ALIVE }],
  ['images: in the answer', 'claimed', { ...held, receipt: { image_sha256: imageHashes } }],
  ['images: fetched from URLs', 'claimed', { ...linked, receipt: { image_sha256: imageHashes }, images: pictures }],
  ['images: behind URLs, not kept', 'claimed', { ...linked, receipt: { image_sha256: imageHashes } }],
];

const REFUSED: readonly [string, Changes][] = [
  // Incomplete answers.
  ...both('the receipt says cancelled', { receipt: { finish_reason: 'cancelled' } }),
  ['plain: cut short', { body: (text) => text.slice(0, -3) }],
  ['plain: empty', { body: () => '' }],
  ['stream: cut before its signature', { stream: true, body: (text) => text.slice(0, text.indexOf('"se_signature":"M') - 100) }],
  ['stream: cut inside its signature', { stream: true, body: (text) => text.slice(0, text.indexOf('"se_signature":"M') + 40) }],
  ['stream: an event left out', { stream: true, body: (text) => text.replace(chatChunk('', 'stop'), '') }],
  ['stream: events exchanged', { stream: true, body: (text) => text.slice(text.indexOf(KEEP_ALIVE) + KEEP_ALIVE.length) + chatChunk('') }],
  ['stream: empty', { stream: true, body: () => '' }],
  // Changed bytes.
  ['plain: a changed byte', { body: (text) => text.replace('assistant', 'assistanT') }],
  ['stream: a changed byte', { stream: true, body: (text) => text.replace('no comment', 'no Comment') }],
  ['stream messages: a changed byte', { format: 'messages', stream: true, body: (text) => text.replace('Hello', 'hello') }],
  ['stream: an event put in', { stream: true, body: (text) => chatChunk('more') + text }],
  ['stream: an event after the signature', { stream: true, body: (text) => text.replace(DONE, chatChunk('more') + DONE) }],
  ['stream: an event after the end', { stream: true, body: (text) => text + chatChunk('more') }],
  [
    'stream responses: an event after the signature',
    { format: 'responses', stream: true, body: (text) => text.replace(DONE, `${dataEvent({ delta: 'x' })}${DONE}`) },
  ],
  [
    'stream messages: an event after the signature',
    { format: 'messages', stream: true, body: (text) => text + namedEvent('content_block_delta', {}) },
  ],
  // Comments and unsigned parts.
  [
    'stream: content hidden behind a carriage return',
    { stream: true, body: (text) => text.replace(KEEP_ALIVE, `: x\r${chatChunk('more')}`) },
  ],
  [
    'stream: content hidden in a comment behind U+2028',
    { stream: true, body: (text) => text.replace(KEEP_ALIVE, `: x\u2028${chatChunk('more')}`) },
  ],
  ['stream: the terminator among the signed events', { stream: true, events: [chatChunk('one'), DONE, chatChunk('two')] }],
  ['stream: the terminator without a space', { stream: true, events: [chatChunk('one'), 'data:[DONE]\n\n', chatChunk('two')] }],
  ['stream: another field among the signed events', { stream: true, events: ['id: 1\n\n', chatChunk('one')] }],
  ['stream: an error event', { stream: true, events: [chatChunk('one'), namedEvent('error', {})] }],
  ['stream: a data line twice in an event', { stream: true, events: [`${chatChunk('one').trimEnd()}\n${chatChunk('two')}`] }],
  ['stream: an event without data', { stream: true, events: [chatChunk('one'), 'event: ping\n\n'] }],
  ...(
    [
      ['an error', dataEvent({ ...CHAT, error: { message: 'x' } })],
      ['an error with an escaped name', 'data: {"\\u0065rror":{"message":"x"}}\n\n'],
      ['an error before null', 'data: {"error":{"message":"x"},"error":null}\n\n'],
      ['a failed response', namedEvent('response.completed', { response: { error: { message: 'x' } } })],
      ['a type under another name', 'event: ping\ndata: {"type":"message_stop"}\n\n'],
      ['a type without a name', dataEvent({ type: 'message_stop' })],
      ['a name without a type', 'event: ping\ndata: {}\n\n'],
      ['two types', 'event: ping\ndata: {"type":"ping","type":"message_stop"}\n\n'],
      ['data without JSON', 'data: {see example.org}\n\n'],
      ['data cut off', 'data: {"choices":[]\n\n'],
      ['data with a tab', 'data: {"choices":\t[]}\n\n'],
      ['two numbers in place of one', 'data: {"a": 1 2}\n\n'],
      ['an error behind a space', 'data: {"error" : {"message":"x"}}\n\n'],
      ['a string without an end', 'data: {"a":"}\n\n'],
      ['a text as data', 'data: "text"\n\n'],
      ['a number with a leading zero', 'data: {"a":01}\n\n'],
      ['an escape that is none', 'data: {"a":"\\x"}\n\n'],
      ['half an escape', 'data: {"a":"\\u00\\n41"}\n\n'],
      ['a control character', 'data: {"a":"\u0001"}\n\n'],
      ['a NUL', 'data: {"a":"\u0000"}\n\n'],
      ['U+0085', 'data: {"a":"\u0085"}\n\n'],
      ['U+2028', 'data: {"a":"\u2028"}\n\n'],
      ['an error in another case', 'data: {"Error":{"message":"x"}}\n\n'],
      ['a type in another case', 'event: ping\ndata: {"type":"ping","Type":"error"}\n\n'],
      ['a name that is not ASCII', 'data: {"\u00e9rror":1}\n\n'],
    ] as const
  ).map(([name, event]): [string, Changes] => [`stream: ${name}`, { stream: true, events: [chatChunk('one'), event, chatChunk('two')] }]),
  ...[
    { details: 'prompt_tokens_details', kind: 'cached' },
    { details: 'completion_tokens_details', kind: 'reasoning' },
  ].map(({ details, kind }): [string, Changes] => {
    const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3, [details]: { [`${kind}_tokens`]: 999 } };
    const event = dataEvent({ ...CHAT, choices: [], usage }).replace(`${kind}_tokens`, `${kind}\\u005ftokens`);
    return [`stream: other ${kind} tokens than in the receipt, under an escaped name`, { stream: true, events: [chatChunk('one'), event] }];
  }),
  ['plain: an error', { plain: { error: { message: 'x' } } }],
  ['plain: an error beside an answer', { plain: { ...FORMATS.chat.plain, error: 'x' } }],
  ['plain: a text', { plain: 'text' }],
  ['plain: a list', { plain: [FORMATS.chat.plain] }],
  ['stream: a comment without its blank line', { stream: true, body: (text) => text.replace(KEEP_ALIVE, `: x\n${chatChunk('more')}`) }],
  [
    'stream: a comment inside an event',
    { stream: true, format: 'messages', body: (text) => text.replace('\ndata:', `\n${KEEP_ALIVE}data:`) },
  ],
  ['stream: foreign members in the signature event', { stream: true, body: inEvent('"type":"response.output_text.delta","delta":"more"') }],
  ['stream: usage in the signature event', { stream: true, body: inEvent('"usage":{"total_tokens":1}') }],
  ['stream: an error in the signature event', { stream: true, body: inEvent('"error":{"message":"x"}') }],
  ['stream: choices twice in the signature event', { stream: true, body: inEvent('"choices":[{"delta":{"content":"more"}}]') }],
  ['stream: escapes in the signature event', { stream: true, body: inEvent('"\\u0075sage":1') }],
  [
    'stream: another model in the signature event',
    { stream: true, body: (text) => text.replace('"model":"pico","choices":[],', '"model":"better","choices":[],') },
  ],
  [
    'stream: another id in the signature event',
    { stream: true, body: (text) => text.replace(/"chatcmpl-1"(?=[^\n]*"choices":\[\])/, '"chatcmpl-2"') },
  ],
  // Signatures.
  ['plain: signed by another key', { signer: generateEnclaveKey() }],
  ['stream: signed by another key', { stream: true, signer: generateEnclaveKey() }],
  ...both('another response signature', { proof: (proof) => ({ ...proof, signature: swapped(proof.signature, 40) }) }),
  ...both('another receipt signature', { proof: (proof) => ({ ...proof, receiptSignature: swapped(proof.receiptSignature, 40) }) }),
  ...both('the response signature in place of the receipt signature', {
    proof: (proof) => ({ ...proof, receiptSignature: proof.signature }),
  }),
  ...both('another receipt', { proof: (proof) => ({ ...proof, receipt: swapped(proof.receipt, 60) }) }),
  ...both('no receipt', { proof: (proof) => ({ ...proof, receipt: '' }) }),
  ...both('another hash', { proof: (proof) => ({ ...proof, responseHash: '0'.repeat(64) }) }),
  ['plain: no signature', { headers: { 'X-Se-Signature': '' } }],
  ['plain: no hash', { headers: { 'X-Response-Hash': '' } }],
  ['plain: no key', { headers: { 'X-Attestation-Se-Public-Key': '' } }],
  // Receipts of another response, request or model.
  ...both('the receipt names another response', { receipt: { response_sha256: '0'.repeat(64) } }),
  ...both('the receipt names another request', { receipt: { request_sha256: '0'.repeat(64) } }),
  ['plain: another request was sent', { request: (text) => text.replace('Say', 'say') }],
  ...both('the receipt names another nonce', { receipt: { client_nonce: 'B'.repeat(43) } }),
  ...both('the receipt names another model', { receipt: { model: 'larger' } }),
  [
    'plain: the receipt names a model that is none of the fallbacks',
    { receipt: { model: 'larger' }, sentRequest: JSON.stringify({ messages, model: MODEL, models: ['other'] }) },
  ],
  ...both('the receipt names another endpoint', { receipt: { endpoint: '/v1/completions' } }),
  ...both('the receipt names another provider', { receipt: { provider_id: '0'.repeat(32) } }),
  ...both('the receipt names another key', { receipt: { se_key_sha256: '0'.repeat(64) } }),
  ['stream: the receipt names another job', { stream: true, receipt: { job_id: 'ffffffff-89ab-4cde-8f01-23456789abcd' } }],
  [
    'plain: the right request stands only inside another member of the receipt',
    {
      receiptBytes: ({ request_sha256, ...rest }) =>
        canonicalJsonBytes({ ...rest, request_sha256: '0'.repeat(64), extra: { request_sha256: request_sha256 ?? '' } }),
    },
  ],
  ['plain: the receipt lacks its usage', { receiptBytes: ({ usage: _, ...rest }) => canonicalJsonBytes(rest) }],
  ['plain: the receipt has an unknown version', { receipt: { v: 9 } }],
  ['plain: the receipt has an unknown finish reason', { receipt: { finish_reason: 'bored' } }],
  ['plain: the receipt must not be read without an unknown member', { receipt: { crit: ['limits'], limits: 1 } }],
  ['plain: the receipt is not canonical', { receiptBytes: (honest) => utf8(JSON.stringify(honest, null, 1)) }],
  [
    'plain: a member of the receipt is there twice',
    { receiptBytes: (honest) => utf8(new TextDecoder().decode(canonicalJsonBytes(honest)).replace('"v":1', '"v":1,"v":1')) },
  ],
  ['plain: the receipt of version 2 lacks its engine', { receipt: { v: 2 } }],
  ['plain: the receipt of version 1 has members of version 2', { receipt: { ...COMPUTED, v: 1 } }],
  // Usage.
  ['plain: the answer reports other usage than the receipt', { plain: withUsage(1, 1, 2) }],
  ['plain: the receipt counts a total that is no sum', { receipt: { usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 4 } } }],
  ['plain: the receipt counts more tokens than the bytes can hold, without an image', imageInPrompt('\\\\u0069mage')],
  ...both('the receipt counts more tokens than the bytes can hold', {
    receipt: { usage: { prompt_tokens: 1, completion_tokens: 900_000, total_tokens: 900_001 } },
  }),
  // Images.
  ['images: another image in the answer', { ...held, receipt: { image_sha256: [...imageHashes].reverse() } }],
  ['images: the receipt names none', held],
  [
    'images: another image behind a URL',
    { ...linked, receipt: { image_sha256: imageHashes }, images: [pictures[0] as Uint8Array, utf8('another')] },
  ],
  ['images: one behind a URL is missing', { ...linked, receipt: { image_sha256: imageHashes }, images: pictures.slice(0, 1) }],
  // The provider's record.
  ['plain: the feed has no such provider', { feed: () => feedOf(selfSignedRecord()) }],
  [
    'plain: the feed names another key for the provider',
    { published: (record) => ({ ...record, se_public_key: toBase64(generateEnclaveKey().x963) }) },
  ],
  [
    'plain: a simulation passed off as an enclave',
    {
      record: { keyProtection: 'software', posture: { secure_enclave: false } },
      published: (record) => ({ ...record, simulated: false, secure_enclave: true, key_protection: 'file' }),
    },
  ],
  [
    'plain: another chip in the record',
    { published: (record) => ({ ...record, chip_name: 'Apple M4 Ultra' }), headers: { 'X-Provider-Chip': 'Apple M4 Ultra' } },
  ],
  [
    'plain: another serial number in the record',
    {
      published: (record) => ({ ...record, serial_number: 'STOLEN00001' }),
      headers: { 'X-Provider-Serial': '', 'X-Attestation-Device-Serial': '' },
    },
  ],
  [
    'plain: the attestation of another machine',
    { published: (record) => ({ ...record, attestation_statement: selfSignedRecord().attestation_statement }) },
  ],
  ['plain: a challenge of an hour ago', { record: { challengedAt: NOW - 3_600_000 } }],
  [
    'plain: the challenge of another machine',
    { published: (record) => ({ ...record, last_challenge: selfSignedRecord().last_challenge }) },
  ],
  [
    'plain: protections that are off, said to be on',
    { record: { posture: { sip_enabled: false } }, published: (record) => ({ ...record, sip_enabled: true }) },
  ],
  ['plain: an expired sealing key', { record: { sealing: { not_before: NOW - 1_800_000, not_after: NOW - 600_000 } } }],
  ['plain: a sealing key of the future', { record: { sealing: { not_before: NOW + 600_000, not_after: NOW + 1_200_000 } } }],
  ['plain: a sealing key for longer than an hour', { record: { sealing: { not_after: NOW + 7_200_000 } } }],
  ['plain: a key_id that is not the hash of the sealing key', { record: { sealing: { key_id: '0123456789abcdef' } } }],
  ['plain: a sealing key that is not 32 bytes', { record: { sealing: { x25519_public_key: toBase64(randomBytes(31)) } } }],
  ['plain: a sealing key for another provider', { record: { sealing: { provider_id: '0'.repeat(32) } } }],
  ['plain: a sealing key of another attestation', { record: { sealing: { attestation_sha256: '0'.repeat(64) } } }],
  [
    'plain: the sealing key of another machine',
    { published: (record) => ({ ...record, key_statement: selfSignedRecord().key_statement }) },
  ],
  // Unsigned headers.
  ...(
    [
      ['X-Provider-Id', '0'.repeat(32)],
      ['X-Provider-Chip', 'Apple M4 Ultra'],
      ['X-Provider-Model', 'Mac16,99'],
      ['X-Provider-Serial', 'C02XXXXXXXXX'],
      ['X-Attestation-Device-Serial', 'C02XXXXXXXXX'],
      ['X-Provider-Trust-Level', 'hardware'],
      ['X-Provider-Mda-Verified', 'true'],
    ] as const
  ).map(([name, value]): [string, Changes] => [`plain: the header ${name} says more than the record`, { headers: { [name]: value } }]),
  [
    'plain: the header X-Provider-Secure-Enclave of a simulation says true',
    {
      record: { keyProtection: 'software', posture: { secure_enclave: false } },
      headers: { 'X-Provider-Secure-Enclave': 'true' },
    },
  ],
];

/** The table, signed anew. */
export function answerCases(): AnswerCase[] {
  return [
    ...VERIFIED.map(([name, enclave, changes]): AnswerCase => ({ name, expected: 'verified', enclave, answer: keptAnswer(changes) })),
    ...REFUSED.map(([name, changes]): AnswerCase => ({ name, expected: 'refused', answer: keptAnswer(changes) })),
  ];
}
