import { expect, it } from 'vitest';
import { LinkError } from '../../../src/cluster/link/link-error.js';
import { LinkNetwork, Recorder } from '../link-fixture.js';

const bytes = (text: string): Uint8Array => Buffer.from(text);
const EMPTY = new Uint8Array(0);

function pair(seed = 1) {
  const net = new LinkNetwork(seed);
  const a = net.start('a');
  const b = net.start('b');
  const incoming: Recorder[] = [];
  const headers: string[] = [];
  b.links.onStream('echo', (stream, header) => {
    headers.push(Buffer.from(header).toString());
    const recorder = new Recorder();
    incoming.push(recorder);
    return {
      onMessage: (message, isText) => {
        recorder.onMessage(message, isText);
        stream.send(Uint8Array.from(message), isText);
      },
      onControl: (message) => recorder.onControl(message),
      onClosed: (end) => recorder.onClosed(end),
    };
  });
  return { net, a, b, incoming, headers };
}

it('carries messages of a stream in both directions, and closes after the last one', () => {
  const { net, a, incoming, headers } = pair();
  const recorder = new Recorder();
  const stream = a.to('b').openStream('echo', bytes('header'), recorder);
  expect(stream.send(bytes('{"a":1}'), true)).toBe(true);
  stream.send(Uint8Array.of(0, 255), false);
  stream.send(EMPTY, false);
  net.until(() => recorder.messages.length === 3);
  expect(headers).toEqual(['header']);
  expect(recorder.messages).toEqual([
    { bytes: Buffer.from('{"a":1}'), isText: true },
    { bytes: Buffer.from([0, 255]), isText: false },
    { bytes: Buffer.alloc(0), isText: false },
  ]);
  stream.send(bytes('last'), true);
  stream.close();
  net.until(() => incoming[0]?.ends.length === 1);
  expect(incoming[0]?.texts.at(-1)).toBe('last');
  expect([incoming[0]?.ends, recorder.ends]).toEqual([[{ kind: 'closed' }], [{ kind: 'closed' }]]);
  expect(stream.isOpen).toBe(false);
  expect(stream.send(EMPTY, false)).toBe(false);
  expect(a.to('b').streamCount).toBe(0);
});

it('cuts long messages into envelopes of at most 768 KiB, and puts them together', () => {
  const { net, a } = pair();
  let longest = 0;
  net.network.onMessage = (_subject, payload) => {
    longest = Math.max(longest, payload.length);
  };
  const recorder = new Recorder();
  const body = Buffer.alloc(8 * 1024 * 1024, 'body');
  a.to('b').openStream('echo', EMPTY, recorder).send(body, false);
  net.until(() => recorder.messages.length === 1);
  expect(recorder.messages[0]?.bytes.equals(body)).toBe(true);
  expect(longest).toBeGreaterThan(200 * 1024);
  expect(longest).toBeLessThanOrEqual(768 * 1024);
});

it('aborts a stream at both sides, without sending queued messages', () => {
  const { net, a, incoming } = pair();
  const recorder = new Recorder();
  const stream = a.to('b').openStream('echo', EMPTY, recorder);
  net.until(() => incoming.length === 1);
  stream.abort('cancelled');
  net.until(() => incoming[0]?.ends.length === 1);
  expect(recorder.ends).toEqual([{ kind: 'aborted', code: 'cancelled', byPeer: false }]);
  expect(incoming[0]?.ends).toEqual([{ kind: 'aborted', code: 'cancelled', byPeer: true }]);
});

it('refuses streams and requests of unknown kinds or over its bounds', async () => {
  const net = new LinkNetwork(2);
  const a = net.start('a');
  const b = net.start('b', { limits: { maxIncomingStreams: 1, maxIncomingRequests: 1 } });
  b.links.onStream('known', () => new Recorder());
  b.links.onRequest('slow', () => new Promise(() => {}));
  const recorders = ['unknown', 'known', 'known'].map((kind) => {
    const recorder = new Recorder();
    a.to('b').openStream(kind, EMPTY, recorder);
    return recorder;
  });
  const requests = ['unknown', 'slow', 'slow'].map((kind) => a.to('b').request(kind, EMPTY, { timeoutMs: 500 }));
  const codes = Promise.all(requests.map((request) => request.catch((error: LinkError) => error.code)));
  await net.clock.runAsync(1_000);
  expect(recorders.map(({ ends }) => ends)).toEqual([
    [{ kind: 'aborted', code: 'unknown_kind', byPeer: true }],
    [],
    [{ kind: 'aborted', code: 'overloaded', byPeer: true }],
  ]);
  expect(await codes).toEqual(['unknown_kind', 'timeout', 'overloaded']);
});

it('carries requests and replies that are larger than the frames gathered in one envelope', async () => {
  const { net, a, b } = pair();
  net.until(() => a.to('b').state === 'up');
  b.links.onRequest('echo', (payload) => Uint8Array.from(payload));
  const payload = Buffer.alloc(100 * 1024, 'body');
  const reply = a
    .to('b')
    .request('echo', payload, { timeoutMs: 2_000 })
    .catch((error: LinkError) => Buffer.from(error.code));
  await net.clock.runAsync(2_500);
  expect(payload.equals(await reply)).toBe(true);
  expect(b.to('a').counts.malformed).toBe(0);
});

it('answers requests, reports failures by code, and cancels', async () => {
  const { net, a, b } = pair();
  const signals: AbortSignal[] = [];
  b.links.onRequest('upper', (payload, { peer }) => bytes(`${peer}:${Buffer.from(payload).toString().toUpperCase()}`));
  b.links.onRequest('fails', () => {
    throw new Error('secret');
  });
  b.links.onRequest('slow', (_payload, { signal }) => {
    signals.push(signal);
    return new Promise(() => {});
  });
  b.links.onRequest('large', () => new Uint8Array(300 * 1024));
  const link = a.to('b');
  const controller = new AbortController();
  const codeOf = (request: Promise<Uint8Array>) => request.then(() => null).catch((error: LinkError) => error.code);
  const upper = link.request('upper', bytes('text'), { timeoutMs: 1_000 });
  const codes = Promise.all([
    codeOf(link.request('fails', EMPTY, { timeoutMs: 1_000 })),
    codeOf(link.request('slow', EMPTY, { timeoutMs: 1_000, signal: controller.signal })),
    codeOf(link.request('large', EMPTY, { timeoutMs: 1_000 })),
    codeOf(link.request('upper', new Uint8Array(300 * 1024), { timeoutMs: 1_000 })),
  ]);
  await net.clock.runAsync(50);
  controller.abort();
  await net.clock.runAsync(50);
  expect(Buffer.from(await upper).toString()).toBe('a:TEXT');
  expect(await codes).toEqual(['failed', 'aborted', 'too_large', 'too_large']);
  expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
  expect(JSON.stringify(b.events)).not.toContain('secret');
});

it('lets the writer wait: `send` returns false, `onDrain` follows, and memory stays within the bounds', () => {
  const net = new LinkNetwork(3);
  net.network.bytesPerMs = 1_000;
  const a = net.start('a', { totalWindowBytes: 1024 * 1024 });
  const b = net.start('b', { totalWindowBytes: 1024 * 1024 });
  const received = new Recorder();
  b.links.onStream('bulk', () => received);
  let peak = 0;
  const message = Buffer.alloc(50_000, 'x');
  let sent = 0;
  const recorder = new (class extends Recorder {
    override onDrain(): void {
      super.onDrain();
      fill();
    }
  })();
  const stream = a.to('b').openStream('bulk', EMPTY, recorder);
  const fill = (): void => {
    while (sent < 200) {
      sent++;
      const mayGoOn = stream.send(message, false);
      peak = Math.max(peak, a.to('b').retainedBytes);
      if (!mayGoOn) return;
    }
    stream.close();
  };
  fill();
  expect(sent).toBeLessThan(60);
  net.until(() => received.ends.length === 1);
  expect(received.messages.length).toBe(200);
  expect(recorder.drains).toBeGreaterThan(3);
  // Window, plus the stream's high-water mark, plus two messages.
  expect(peak).toBeLessThan(1024 * 1024 + 512 * 1024 + 2 * message.length);
});

it('closes a stream whose queue overflows, never the link', () => {
  const net = new LinkNetwork(4);
  net.network.bytesPerMs = 1;
  const limits = { maxStreamQueueBytes: 300_000, maxQueuedBytes: 500_000 };
  const a = net.start('a', { totalWindowBytes: 1, limits });
  const b = net.start('b');
  b.links.onStream('bulk', () => new Recorder());
  const recorders = [0, 1, 2, 3].map(() => new Recorder());
  const streams = recorders.map((recorder) => a.to('b').openStream('bulk', EMPTY, recorder));
  const message = Buffer.alloc(50_000);
  const [first, ...others] = streams;
  for (let count = 0; count < 12; count++) first?.send(message, false);
  for (let count = 0; count < 5; count++) for (const stream of others) stream.send(message, false);
  const ended = recorders.filter(({ ends }) => ends.length > 0);
  expect(ended.map(({ ends }) => ends)).toEqual([0, 1].map(() => [{ kind: 'aborted', code: 'queue_full', byPeer: false }]));
  expect(ended[0]).toBe(recorders[0]);
  net.until(() => a.to('b').state === 'up');
  expect(a.to('b').counts.losses).toBe(0);
});

it('sends control messages past bulk data, in order', () => {
  const net = new LinkNetwork(5);
  net.network.bytesPerMs = 10_000;
  const a = net.start('a');
  const b = net.start('b');
  const received = new Recorder();
  b.links.onStream('bulk', () => received);
  const stream = a.to('b').openStream('bulk', EMPTY, new Recorder());
  net.until(() => a.to('b').state === 'up');
  for (let count = 0; count < 60; count++) stream.send(Buffer.alloc(250_000), false);
  net.clock.run(50);
  const startedAt = net.clock.now();
  for (let count = 0; count < 10; count++) stream.sendControl(bytes(String(count)));
  net.until(() => received.controls.length === 10);
  // At most the transport's backlog is ahead: 2 MiB at 10 kB per millisecond.
  expect(net.clock.now() - startedAt).toBeLessThan(260);
  expect(received.messages.length).toBeLessThan(40);
  expect(received.controls).toEqual([...'0123456789']);
});

it('gives waiting streams turns, so that short messages do not wait for the bulk of another', () => {
  const net = new LinkNetwork(6);
  net.network.bytesPerMs = 1_000;
  const a = net.start('a', { totalWindowBytes: 256 * 1024 });
  const b = net.start('b', { totalWindowBytes: 256 * 1024 });
  const received: Recorder[] = [];
  b.links.onStream('any', () => {
    received.push(new Recorder());
    return received.at(-1) as Recorder;
  });
  const bulk = a.to('b').openStream('any', EMPTY, new Recorder());
  const short = a.to('b').openStream('any', EMPTY, new Recorder());
  net.until(() => received.length === 2);
  for (let count = 0; count < 15; count++) bulk.send(Buffer.alloc(1024 * 1024), false);
  short.send(bytes('token'), true);
  const startedAt = net.clock.now();
  net.until(() => received[1]?.messages.length === 1);
  expect(net.clock.now() - startedAt).toBeLessThan(700);
});

it('is lost after 3 s of silence, with all streams and requests, and comes back by itself', async () => {
  const { net, a, b, incoming } = pair();
  const recorder = new Recorder();
  a.to('b').openStream('echo', EMPTY, recorder);
  net.until(() => incoming.length === 1);
  b.links.onRequest('slow', () => new Promise(() => {}));
  const request = a
    .to('b')
    .request('slow', EMPTY, { timeoutMs: 60_000 })
    .catch((error: LinkError) => error.code);
  await net.clock.runAsync(2_000);
  expect(recorder.ends).toEqual([]);
  net.network.faults.loss = 1;
  await net.clock.runAsync(2_800);
  expect(recorder.ends).toEqual([]);
  await net.clock.runAsync(1_500);
  expect(recorder.ends).toEqual([{ kind: 'link_lost', reason: 'silent' }]);
  expect(incoming[0]?.ends).toEqual([{ kind: 'link_lost', reason: 'silent' }]);
  expect(await request).toBe('link_lost');
  expect(a.to('b').state).toBe('lost');
  expect(() => a.to('b').openStream('echo', EMPTY, recorder)).toThrow(LinkError);
  net.network.faults.loss = 0;
  net.until(() => a.to('b').state === 'up' && b.to('a').state === 'up', 3_000);
  const again = new Recorder();
  a.to('b').openStream('echo', EMPTY, again).send(bytes('again'), true);
  net.until(() => again.texts.length === 1);
  expect(a.to('b').counts.losses).toBe(1);
});

it('stays up without traffic, by heartbeats', () => {
  const { net, a, b } = pair();
  net.until(() => a.to('b').state === 'up' && b.to('a').state === 'up');
  net.clock.run(60_000);
  expect([a.to('b').counts.losses, b.to('a').counts.losses]).toEqual([0, 0]);
  expect(a.to('b').counts.sent).toBeLessThan(70);
});

it('pauses up to 10 s while its transport is disconnected, and loses nothing', () => {
  const { net, a } = pair();
  const recorder = new Recorder();
  const stream = a.to('b').openStream('echo', EMPTY, recorder);
  net.until(() => a.to('b').state === 'up');
  stream.send(bytes('before'), true);
  for (const transport of net.network.transports) transport.setConnected(false);
  stream.send(bytes('during'), true);
  net.clock.run(9_000);
  expect(recorder.ends).toEqual([]);
  for (const transport of net.network.transports) transport.setConnected(true);
  net.until(() => recorder.messages.length === 2, 2_000);
  expect(recorder.texts).toEqual(['before', 'during']);
  for (const transport of net.network.transports) transport.setConnected(false);
  net.clock.run(10_500);
  expect(recorder.ends).toEqual([{ kind: 'link_lost', reason: 'transport_disconnected' }]);
});

it('does not take its own stall for the silence of the peer', () => {
  const { net, a } = pair();
  net.until(() => a.to('b').state === 'up');
  const { now } = net.clock;
  // The clock jumps, as after SIGSTOP and SIGCONT.
  net.clock.now = () => now.call(net.clock) + 30_000;
  net.clock.run(1_000);
  expect(a.to('b').counts.losses).toBe(0);
});

it.each(['a', 'b'] as const)('ends all streams when %s restarts, and takes nothing of the old incarnation', (name) => {
  const { net, a, b, incoming } = pair();
  const recorder = new Recorder();
  const stream = a.to('b').openStream('echo', EMPTY, recorder);
  stream.send(bytes('one'), true);
  net.until(() => recorder.messages.length === 1);
  (name === 'a' ? a : b).transport.kill();
  const again = net.start(name);
  const streams: Recorder[] = [];
  again.links.onStream('echo', () => {
    streams.push(new Recorder());
    return streams.at(-1) as Recorder;
  });
  again.to(name === 'a' ? 'b' : 'a');
  const survivor = name === 'a' ? (incoming[0] as Recorder) : recorder;
  net.until(() => survivor.ends.length === 1, 500);
  expect(survivor.ends).toEqual([{ kind: 'link_lost', reason: 'peer_restarted' }]);
  net.clock.run(2_000);
  expect(streams).toEqual([]);
  expect(again.to(name === 'a' ? 'b' : 'a').state).toBe('up');
});

it('says goodbye, and notices a peer without subscription sooner than a silent one', () => {
  const { net, a, b } = pair();
  const reasons: string[] = [];
  a.to('b').onLost((reason) => reasons.push(reason));
  net.until(() => a.to('b').state === 'up' && b.to('a').state === 'up');
  b.links.remove('a');
  net.until(() => reasons.length === 1, 100);
  expect(reasons).toEqual(['peer_closed']);
  net.until(() => a.to('b').state === 'up', 3_000);
  b.transport.kill();
  net.until(() => reasons.length === 2, 2_500);
  expect(reasons).toEqual(['peer_closed', 'no_responders']);
});

it('survives handlers that throw', () => {
  const { net, a, b } = pair();
  b.links.onStream('throws', () => ({
    onMessage: () => {
      throw new Error('secret');
    },
    onClosed: () => {},
  }));
  const recorder = new Recorder();
  a.to('b').openStream('throws', EMPTY, recorder).send(bytes('x'), true);
  net.until(() => recorder.ends.length === 1);
  expect(recorder.ends).toEqual([{ kind: 'aborted', code: 'failed', byPeer: true }]);
  expect(b.events.at(-1)).toEqual({ event: 'handler_failed', peer: 'a', reason: 'throws: Error' });
});

it('divides the window among the links', () => {
  const net = new LinkNetwork(7);
  const a = net.start('a');
  const first = a.to('b');
  expect(first.windowBytes).toBe(32 * 1024 * 1024);
  a.to('c');
  a.to('d');
  a.to('e');
  expect(first.windowBytes).toBe(8 * 1024 * 1024);
  a.links.remove('e');
  a.links.remove('d');
  expect(first.windowBytes).toBe(16 * 1024 * 1024);
});
