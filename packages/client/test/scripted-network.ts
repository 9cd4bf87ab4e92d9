/** `ScriptedNetwork`: a coordinator and its providers in memory, behind a `fetch`. Tests can alter every message. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  type AttestationRecord,
  canonicalJsonBytes,
  E2E_RESPONSE_CONTENT_TYPE,
  type E2eAnswerHead,
  type E2eKeyset,
  type E2eKeysetProvider,
  type E2eProof,
  encodeE2eAnswerHead,
  type JsonValue,
  type OpenedE2eRequest,
  openE2eRequest,
  toBase64,
  utf8,
} from '@inference/protocol';
import { e2eKeyPair, generateSealingKeyPair, nodeE2eCrypto, type SealingKeyPair } from '@inference/protocol/crypto';
import {
  feedOf,
  hardwareRecord,
  NOW,
  type RecordOptions,
  selfSignedRecord,
  signed,
  simulatedAnchor,
} from '../../verifier/test/published-record.js';
import { type EnclaveKey, generateEnclaveKey, sha256, signDer } from '../../verifier/test/signed-answers.js';
import type { Fetch } from '../src/network/download.js';
import type { PolicyInput } from '../src/policy/policy.js';

export { NOW };
export const BASE_URL = 'https://coordinator.invalid';
export const MODEL = 'm';
export const JOB_ID = '01234567-89ab-7cde-8f01-23456789abcd';
/** Accepts the simulated authority as if it were the manufacturer. */
export const POLICY: PolicyInput = { anchors: [{ name: toBase64(simulatedAnchor.name), publicKey: toBase64(simulatedAnchor.publicKey) }] };

export interface ScriptedProvider {
  readonly enclaveKey: EnclaveKey;
  readonly sealingKey: SealingKeyPair;
  record: AttestationRecord;
  entry: E2eKeysetProvider;
}

/** `isSimulated`: a provider with software keys and without certificates. */
export interface ProviderOptions extends RecordOptions {
  readonly isSimulated?: boolean;
}

export function scriptedProvider({ isSimulated = false, ...options }: ProviderOptions = {}): ScriptedProvider {
  const enclaveKey = generateEnclaveKey();
  const sealingKey = generateSealingKeyPair();
  const key_id = sha256(sealingKey.publicKey).slice(0, 16);
  const x25519 = toBase64(sealingKey.publicKey);
  const sealing = { key_id, x25519_public_key: x25519, ...options.sealing };
  const record = isSimulated
    ? selfSignedRecord({ key: enclaveKey, keyProtection: 'software', ...options, sealing })
    : hardwareRecord({ key: enclaveKey, ...options, sealing });
  const entry = {
    provider_id: record.provider_id,
    key_id,
    x25519,
    not_after: (options.now ?? NOW) + 1_800_000,
    models: [MODEL],
    weight: 1,
    record_sha256: recordSha256(record),
  } as E2eKeysetProvider;
  return { enclaveKey, sealingKey, record, entry };
}

export function recordSha256(record: AttestationRecord): string {
  return sha256(canonicalJsonBytes(record as unknown as JsonValue));
}

/** The content of an answer, before sealing. */
export interface ScriptedAnswer {
  readonly head?: E2eAnswerHead;
  readonly body: readonly string[];
  readonly images?: readonly Uint8Array[];
}

export interface AnswerChanges {
  readonly head?: Partial<E2eAnswerHead>;
  readonly receipt?: { readonly [member: string]: JsonValue };
  readonly proof?: Partial<E2eProof>;
}

/** Frames of a sealed answer: nonce, one per body piece, and the final one. */
export function sealedAnswer(
  provider: ScriptedProvider,
  opened: OpenedE2eRequest,
  { head, body, images = [] }: ScriptedAnswer,
  changes: AnswerChanges = {},
): Uint8Array[] {
  const { context } = opened;
  const sealer = opened.answerSealer();
  const contentType = context.stream ? 'text/event-stream; charset=utf-8' : 'application/json; charset=utf-8';
  const answerHead = { ...(head ?? { status: 200, content_type: contentType }), ...changes.head };
  const frames = [sealer.start(), sealer.seal([encodeE2eAnswerHead(answerHead)], 'stream')];
  for (const piece of body) frames.push(sealer.seal([{ kind: 'body', bytes: utf8(piece) }], 'stream'));
  for (const bytes of images) frames.push(sealer.seal([{ kind: 'image', bytes }], 'padme'));
  const bytes = utf8(body.join(''));
  const hash = nodeE2eCrypto.sha256(bytes);
  const isRefused = answerHead.status >= 400;
  const receipt = {
    v: 1,
    job_id: JOB_ID,
    provider_id: provider.record.provider_id,
    se_key_sha256: sha256(provider.enclaveKey.x963),
    model: context.model,
    endpoint: context.endpoint,
    context_sha256: opened.contextSha256,
    sealed_request_sha256: opened.sealedRequestSha256,
    sealed_response_sha256: sealer.sealedSha256(),
    request_commitment: opened.commitments.request(nodeE2eCrypto.sha256(opened.body)),
    response_commitment: opened.commitments.response(hash),
    ...(images.length === 0
      ? {}
      : { image_commitments: images.map((image, i) => opened.commitments.image(i, nodeE2eCrypto.sha256(image))) }),
    response_bytes: sealer.responseBytes,
    ...(isRefused ? {} : { usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 } }),
    hidden_tokens: 0,
    finish_reason: isRefused ? 'refused' : 'stop',
    started_at: NOW,
    completed_at: NOW + 1,
    ...(isRefused ? {} : { engine: 'scripted 1' }),
    ...changes.receipt,
  };
  const proof = {
    response_hash: sha256(bytes),
    se_signature: toBase64(signDer(provider.enclaveKey, utf8(sha256(bytes)))),
    receipt: signed('e2e-receipt', receipt, provider.enclaveKey),
    ...changes.proof,
  };
  return [...frames, sealer.finish(proof)];
}

/** A request as the coordinator receives it. */
export interface Received {
  readonly url: string;
  readonly init: RequestInit;
}

export class ScriptedNetwork {
  readonly providers: ScriptedProvider[];
  /** Every request, in order. */
  readonly received: Received[] = [];
  /** Sealed requests that providers opened, in order. */
  readonly opened: OpenedE2eRequest[] = [];
  /** Time of the keyset, in milliseconds. */
  now = NOW;
  /** Index of the answering provider among the request's recipients. */
  recipient = 0;
  answer: (opened: OpenedE2eRequest) => ScriptedAnswer;
  changes: AnswerChanges = {};
  /** Further members of the receipt. */
  receiptOf: (opened: OpenedE2eRequest) => { readonly [member: string]: JsonValue } = () => ({});
  /** Alters the keyset; `headers` are those of the request. */
  keyset: (keyset: E2eKeyset, headers: Headers) => E2eKeyset = (keyset) => keyset;
  /** Alters a record. */
  recordOf: (record: AttestationRecord) => AttestationRecord = (record) => record;
  /** Whether the feed calls its anchor simulated. */
  isSimulated = false;
  /** Alters the frames of an answer. */
  frames: (frames: Uint8Array[]) => Uint8Array[] = (frames) => frames;
  /** Answers instead of a provider; null: a provider answers. */
  instead: (() => Response | null) | null = null;
  /** Answers every path instead of the coordinator. */
  everywhere: ((url: URL) => Response | null) | null = null;

  constructor(
    answer: (opened: OpenedE2eRequest) => ScriptedAnswer,
    count = 3,
    providers = Array.from({ length: count }, () => scriptedProvider()),
  ) {
    this.answer = answer;
    this.providers = providers;
  }

  /** Requests that carried a sealed body. */
  get sealedRequests(): Uint8Array[] {
    return this.received.flatMap(({ init }) => (init.body instanceof Uint8Array ? [init.body] : []));
  }

  readonly fetch: Fetch = async (input, init) => {
    init.signal?.throwIfAborted();
    this.received.push({ url: input, init });
    const url = new URL(input);
    const override = this.everywhere?.(url);
    if (override) return override;
    if (url.pathname === '/v1/e2e/keyset') return Response.json(this.#keyset(new Headers(init.headers)));
    if (url.pathname.startsWith('/v1/e2e/records/')) return this.#record(url.pathname.slice('/v1/e2e/records/'.length));
    if (url.pathname === '/v1/providers/attestation') return Response.json(this.#feed(url.searchParams.get('provider_id')));
    if (url.pathname === '/v1/models') return Response.json({ object: 'list', data: [{ id: MODEL, object: 'model' }] });
    if (url.pathname === '/v1/e2e/requests' && init.body instanceof Uint8Array) return this.instead?.() ?? this.#relay(init.body);
    return new Response('not found', { status: 404 });
  };

  #keyset(headers: Headers): E2eKeyset {
    const providers = this.providers.map(({ entry }) => entry).sort((a, b) => (a.provider_id < b.provider_id ? -1 : 1));
    return this.keyset({ v: 1, epoch: 7, issued_at: this.now - 1000, providers }, headers);
  }

  #record(recordSha256: string): Response {
    const provider = this.providers.find(({ entry }) => entry.record_sha256 === recordSha256);
    return provider === undefined ? new Response('gone', { status: 404 }) : Response.json(this.recordOf(provider.record));
  }

  #feed(providerId: string | null): unknown {
    const records = this.providers.map(({ record }) => record).filter(({ provider_id }) => provider_id === providerId);
    const feed = feedOf(...records);
    return this.isSimulated ? feed : { ...feed, trust_anchor: { ...feed.trust_anchor, simulated: false } };
  }

  #relay(bytes: Uint8Array): Response {
    const { provider, opened } = this.open(bytes, this.recipient);
    this.opened.push(opened);
    const frames = this.frames(
      sealedAnswer(provider, opened, this.answer(opened), {
        ...this.changes,
        receipt: { ...this.receiptOf(opened), ...this.changes.receipt },
      }),
    );
    return sealedResponse(frames, this.recipient);
  }

  /** Opens a sealed request as the recipient at `index`. */
  open(bytes: Uint8Array, index: number): { readonly provider: ScriptedProvider; readonly opened: OpenedE2eRequest } {
    const keyIdAt = bytes.indexOf(0x7b) >= 0 ? this.#recipientKeyId(bytes, index) : '';
    const provider = this.providers.find(({ entry }) => entry.key_id === keyIdAt);
    if (provider === undefined) throw new Error(`no provider has the key ${keyIdAt}`);
    return { provider, opened: openE2eRequest(nodeE2eCrypto, bytes, index, e2eKeyPair(provider.sealingKey)) };
  }

  #recipientKeyId(bytes: Uint8Array, index: number): string {
    const length = ((bytes[5] as number) << 8) | (bytes[6] as number);
    const context = JSON.parse(new TextDecoder().decode(bytes.subarray(7, 7 + length))) as { recipients: { key_id: string }[] };
    return context.recipients[index]?.key_id ?? '';
  }
}

/** The coordinator's HTTP response with sealed frames, one per chunk. */
export function sealedResponse(frames: readonly Uint8Array[], recipient: number, headers: Record<string, string> = {}): Response {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const frame of frames) controller.enqueue(frame);
      controller.close();
    },
  });
  return new Response(body, {
    headers: {
      'content-type': E2E_RESPONSE_CONTENT_TYPE,
      'inference-e2e-recipient': String(recipient),
      'x-inference-job-id': JOB_ID,
      ...headers,
    },
  });
}

/** Serves a scripted network over HTTP, on a free port. */
export async function serveNetwork(network: ScriptedNetwork): Promise<{ readonly base: string; readonly close: () => void }> {
  const server = createServer(async (incoming, outgoing) => {
    const pieces: Buffer[] = [];
    for await (const piece of incoming as AsyncIterable<Buffer>) pieces.push(piece);
    const body = pieces.length === 0 ? null : new Uint8Array(Buffer.concat(pieces));
    const response = await network.fetch(BASE_URL + incoming.url, { method: incoming.method ?? 'GET', headers: {}, body });
    outgoing.writeHead(response.status, [...response.headers].flat());
    outgoing.end(new Uint8Array(await response.arrayBuffer()));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  return { base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}
