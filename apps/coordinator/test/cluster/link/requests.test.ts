import { beforeEach, expect, it } from 'vitest';
import { FrameType } from '../../../src/cluster/link/frame.js';
import type { LinkError } from '../../../src/cluster/link/link-error.js';
import { Requests } from '../../../src/cluster/link/requests.js';
import { VirtualClock } from '../virtual-clock.js';

const TIMEOUT_MS = 500;

let clock: VirtualClock;
let requests: Requests;
let sent: { readonly type: number; readonly id: number }[];

beforeEach(() => {
  clock = new VirtualClock();
  sent = [];
  requests = new Requests({
    peer: 'b',
    clock,
    handlers: new Map(),
    maxIncoming: 1,
    maxOutgoing: 1,
    send: (type, id) => sent.push({ type, id }) > 0,
    onHandlerFailed: () => {},
  });
});

/** Outcome of a request: the reply as text, or the error's code. */
function outcome(): Promise<string> {
  return requests.request('ping', new Uint8Array(0), { timeoutMs: TIMEOUT_MS }).then(
    (reply) => Buffer.from(reply).toString(),
    (error: LinkError) => error.code,
  );
}

function reply(): void {
  const id = sent[0]?.id as number;
  requests.received({ type: FrameType.reply, id, payload: Buffer.from('pong'), isText: false, hasMore: false, isOpenedBySender: true });
}

it('ends at its timeout without a stall', async () => {
  const ended = outcome();
  clock.run(TIMEOUT_MS - 1);
  expect(sent.map(({ type }) => type)).toEqual([FrameType.request]);
  clock.run(1);
  expect(sent.map(({ type }) => type)).toEqual([FrameType.request, FrameType.cancel]);
  expect(await ended).toBe('timeout');
});

it('takes a reply that arrived during a stall of this process', async () => {
  const ended = outcome();
  clock.stall(10 * TIMEOUT_MS);
  clock.run(0);
  reply();
  expect(await ended).toBe('pong');
  clock.run(10 * TIMEOUT_MS);
  expect(sent.map(({ type }) => type)).toEqual([FrameType.request]);
});

it('is extended by a stall once, at most to twice its timeout', async () => {
  const ended = outcome();
  clock.stall(10 * TIMEOUT_MS);
  clock.run(TIMEOUT_MS - 1);
  expect(sent.map(({ type }) => type)).toEqual([FrameType.request]);
  clock.stall(10 * TIMEOUT_MS);
  clock.run(0);
  expect(sent.map(({ type }) => type)).toEqual([FrameType.request, FrameType.cancel]);
  expect(await ended).toBe('timeout');
});
