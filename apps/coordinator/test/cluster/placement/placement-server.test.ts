/** Sealed requests of a peer are received up to the announced size, which may be that of a request with images. */
import { FRAME_HEADER_BYTES, type RequestFrames } from '@inference/protocol';
import { expect, it } from 'vitest';
import { encodeMessage } from '../../../src/cluster/json-message.js';
import type { LinkStream } from '../../../src/cluster/link/link-stream.js';
import { PeerStream } from '../../../src/cluster/peer.js';
import { PlacementServer } from '../../../src/cluster/placement/placement-server.js';
import type { RequestQueue } from '../../../src/inference/queue/request-queue.js';
import type { ProviderRegistry } from '../../../src/providers/provider-registry.js';

const PROVIDER_ID = 'a'.repeat(32);
const KEY_ID = 'b'.repeat(16);
const MIB = 1024 * 1024;
const CHUNK_BYTES = MIB / 4;
const FRAME = new Uint8Array(FRAME_HEADER_BYTES + CHUNK_BYTES + 16);

const PLACEMENT_REQUEST = {
  model: 'model',
  account_id: 'account',
  provider_serial: null,
  provider_id: null,
  exclude: [],
  excluded_owners: [],
  trust_floor: null,
  own_floor: false,
  prompt_tokens: 10,
  completion_tokens: 20,
  prefixes: [],
  revocable: false,
  retried: false,
  loaded_only: false,
  idle_only: false,
  wait_ms: 0,
  image: null,
};

/** `PlacementServer` that places every request, and a peer's stream to it. */
async function placedStream() {
  const aborts: string[] = [];
  const started: number[] = [];
  const provider = {
    registration: { identity: { providerId: PROVIDER_ID } },
    models: [{ id: 'model', model_type: 'text', display_name: 'Model', quantization: '8bit', context_length: 4096 }],
    key: { keyId: KEY_ID },
    acceptedKeyIds: [KEY_ID],
    usedSlots: 1,
    trustLevel: 'self_signed',
    isAttested: true,
    ownerAccountId: null,
    isProven: () => false,
  };
  const start = (_job: unknown, frames: RequestFrames) => {
    started.push(frames.count);
    return { isSent: () => true, grant: () => {}, recall: () => {}, cancel: () => {} };
  };
  const estimate = { firstTokenMs: 1, completionMs: 2, costMs: 3 };
  const placed = { kind: 'placed', slot: { provider, start, release: () => {} }, estimate, why: 'local' };
  const placement = { unfitForImages: () => [], providersOfOwner: () => [], maxPlausibleRate: () => null };
  const server = new PlacementServer({
    registry: { placement, snapshot: () => ({ sessionId: 'session' }) } as unknown as ProviderRegistry,
    requestQueue: { placeNow: () => placed } as unknown as RequestQueue,
    onDigestSent: () => {},
  });
  const link: LinkStream = {
    peer: 'near',
    kind: 'placement',
    isOpen: true,
    queuedBytes: 0,
    send: () => true,
    sendControl: () => {},
    close: () => {},
    abort: (code) => aborts.push(code),
  };
  const stream = PeerStream.incoming(link);
  await server.serve(stream, encodeMessage(PLACEMENT_REQUEST));
  return { stream, aborts, started };
}

function startMessage(requestBytes: number, frames: number): Uint8Array {
  const context = {
    v: 1,
    job_id: '7f2c8a4e-0b1d-4c3e-9f5a-6b7c8d9e0f10',
    provider_id: PROVIDER_ID,
    key_id: KEY_ID,
    endpoint: '/v1/chat/completions',
    model: 'model',
    stream: false,
    max_tokens: 8,
    overrides: {},
    response_id: 'r',
    created: 0,
    request_sha256: 'c'.repeat(64),
    issued_at: 0,
    expires_at: 1,
  };
  const job = { type: 'job', context, enc: 'AAAA', request_bytes: requestBytes, credit: 1 };
  return encodeMessage({ type: 'start', job, frames });
}

it('starts a job with a request of 31 MiB, which images may need', async () => {
  const { stream, aborts, started } = await placedStream();
  const count = (31 * MIB) / CHUNK_BYTES;
  stream.onMessage(startMessage(31 * MIB, count), true);
  for (let frame = 0; frame < count; frame++) stream.onMessage(FRAME, false);
  expect(aborts).toEqual([]);
  expect(started).toEqual([count]);
});

it('aborts a request that is longer than announced', async () => {
  const { stream, aborts, started } = await placedStream();
  stream.onMessage(startMessage(CHUNK_BYTES, 2), true);
  stream.onMessage(FRAME, false);
  expect(aborts).toEqual([]);
  stream.onMessage(FRAME, false);
  expect(aborts).toEqual(['too_large']);
  expect(started).toEqual([]);
});
