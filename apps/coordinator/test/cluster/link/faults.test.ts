/** Guarantees of links (order, completeness) over a transport that loses, duplicates and reorders messages. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { LinkNetwork, type Node, Recorder } from '../link-fixture.js';

const RUNS = { seed: 20261123, numRuns: 25 };
const EMPTY = new Uint8Array(0);
const WINDOW = 128 * 1024;

interface Sent {
  readonly bytes: Buffer;
  readonly isText: boolean;
}

/** Index of the first difference, or -1. Faster than `toEqual`, which compares megabytes property by property. */
function firstDifference(received: readonly Sent[], sent: readonly Sent[]): number {
  return received.findIndex(({ bytes, isText }, index) => {
    const expected = sent[index];
    return expected === undefined || expected.isText !== isText || !expected.bytes.equals(bytes);
  });
}

/** A stream between two nodes, with everything that each side has sent. */
interface Tested {
  readonly opener: Recorder;
  readonly acceptor: Recorder;
  readonly sent: { readonly opener: Sent[]; readonly acceptor: Sent[]; readonly controls: string[] };
}

const action = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ type: fc.constant('send' as const), stream: fc.nat(3), bytes: fc.nat(3_000), isText: fc.boolean() }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constant('send' as const), stream: fc.nat(3), bytes: fc.nat(200_000), isText: fc.boolean() }),
  },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('control' as const), stream: fc.nat(3) }) },
  { weight: 5, arbitrary: fc.record({ type: fc.constant('wait' as const), ms: fc.nat(60) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('disconnect' as const), node: fc.nat(1), ms: fc.nat(2_000) }) },
);
const faults = fc.record({
  loss: fc.double({ min: 0, max: 0.2, noNaN: true }),
  duplicate: fc.double({ min: 0, max: 0.3, noNaN: true }),
  reorder: fc.double({ min: 0, max: 0.3, noNaN: true }),
  delayMs: fc.double({ min: 0.1, max: 30, noNaN: true }),
});

it('delivers all bytes of each stream once and in order, within bounded memory, for every loss of the transport', () => {
  fc.assert(
    fc.property(fc.nat(), faults, fc.array(action, { minLength: 10, maxLength: 60 }), (seed, faulty, actions) => {
      const net = new LinkNetwork(seed);
      const limits = { maxStreamQueueBytes: 2 ** 26, maxQueuedBytes: 2 ** 27 };
      const nodes: [Node, Node] = [
        net.start('a', { totalWindowBytes: WINDOW, limits }),
        net.start('b', { totalWindowBytes: WINDOW, limits }),
      ];
      // Heartbeats are lost, too. With at most 20 % loss, some of the dozens within three seconds arrive.
      Object.assign(net.network.faults, faulty);
      const tested: Tested[] = [];
      const senders: ((bytes: Buffer, isText: boolean, isOpener: boolean) => void)[] = [];
      const controls: ((text: string) => void)[] = [];
      for (const [index, node] of [...nodes, ...nodes].entries()) {
        const other = nodes[(index + 1) % 2] as Node;
        const acceptor = new Recorder();
        const kind = `kind${index}`;
        let accepted: { send(bytes: Uint8Array, isText: boolean): boolean } | null = null;
        const pending: Sent[] = [];
        other.links.onStream(kind, (stream) => {
          accepted = stream;
          for (const { bytes, isText } of pending) stream.send(bytes, isText);
          return acceptor;
        });
        const opener = new Recorder();
        const stream = node.to(index % 2 === 0 ? 'b' : 'a').openStream(kind, EMPTY, opener);
        const entry: Tested = { opener, acceptor, sent: { opener: [], acceptor: [], controls: [] } };
        tested.push(entry);
        senders.push((bytes, isText, isOpener) => {
          entry.sent[isOpener ? 'opener' : 'acceptor'].push({ bytes, isText });
          if (isOpener) stream.send(bytes, isText);
          else if (accepted === null) pending.push({ bytes, isText });
          else accepted.send(bytes, isText);
        });
        controls.push((text) => {
          entry.sent.controls.push(text);
          stream.sendControl(Buffer.from(text));
        });
      }
      let number = 0;
      let peak = 0;
      const measure = (): void => {
        for (const node of nodes) for (const link of node.links.links.values()) peak = Math.max(peak, link.outbox.retainedBytes);
      };
      for (const each of actions) {
        number++;
        if (each.type === 'wait') net.clock.run(each.ms);
        else if (each.type === 'control') controls[each.stream]?.(String(number));
        else if (each.type === 'disconnect') {
          const { transport } = nodes[each.node] as Node;
          transport.setConnected(false);
          net.clock.setTimer(each.ms, () => transport.setConnected(true));
        } else senders[each.stream]?.(Buffer.alloc(each.bytes, String(number)), each.isText, number % 2 === 0);
        measure();
      }
      const isDone = (): boolean => {
        measure();
        return tested.every(
          ({ opener, acceptor, sent }) =>
            opener.messages.length >= sent.acceptor.length &&
            acceptor.messages.length >= sent.opener.length &&
            acceptor.controls.length >= sent.controls.length,
        );
      };
      net.until(() => isDone() || nodes.some((node) => [...node.links.links.values()].some(({ counts }) => counts.losses > 0)), 300_000);
      // With such faults a link may be lost. Then messages may be missing, but none may be wrong.
      const isLost = nodes.some((node) => [...node.links.links.values()].some(({ counts }) => counts.losses > 0));
      net.clock.run(200);
      for (const { opener, acceptor, sent } of tested) {
        expect(firstDifference(acceptor.messages, sent.opener)).toBe(-1);
        expect(firstDifference(opener.messages, sent.acceptor)).toBe(-1);
        expect(acceptor.controls).toEqual(sent.controls.slice(0, acceptor.controls.length));
        if (!isLost) expect(acceptor.messages.length + opener.messages.length).toBe(sent.opener.length + sent.acceptor.length);
      }
      expect(peak).toBeLessThan(WINDOW + 100_000);
    }),
    RUNS,
  );
});

it('carries control messages while bulk data is lost and sent again', () => {
  fc.assert(
    fc.property(fc.nat(), (seed) => {
      const net = new LinkNetwork(seed);
      const a = net.start('a');
      const b = net.start('b');
      const received = new Recorder();
      b.links.onStream('bulk', () => received);
      const stream = a.to('b').openStream('bulk', EMPTY, new Recorder());
      net.until(() => a.to('b').state === 'up' && b.to('a').state === 'up');
      net.clock.run(100);
      // All data envelopes are lost, and only those.
      const { carry } = net.network;
      net.network.carry = (...[from, subject, payload, ...rest]) => {
        if (((payload[1] ?? 0) & 3) !== 2) carry.call(net.network, from, subject, payload, ...rest);
      };
      for (let count = 0; count < 20; count++) stream.send(Buffer.alloc(100_000), false);
      for (let count = 0; count < 20; count++) {
        stream.sendControl(Buffer.from(String(count)));
        net.clock.run(20);
        expect(received.controls.length).toBe(count + 1);
      }
      expect(received.messages).toEqual([]);
      net.network.carry = carry;
      net.until(() => received.messages.length === 20, 10_000);
      expect(a.to('b').counts.losses).toBe(0);
    }),
    { ...RUNS, numRuns: 5 },
  );
});

it('ends streams exactly once, and works again, however often either side restarts', () => {
  fc.assert(
    fc.property(
      fc.nat(),
      faults,
      fc.array(fc.record({ who: fc.nat(1), afterMs: fc.nat(400) }), { maxLength: 6 }),
      (seed, faulty, restarts) => {
        const net = new LinkNetwork(seed);
        Object.assign(net.network.faults, faulty, { loss: Math.min(faulty.loss, 0.05) });
        const names = ['a', 'b'] as const;
        const recorders: Recorder[] = [];
        const start = (name: 'a' | 'b'): Node => {
          const node = net.start(name);
          node.links.onStream('any', () => {
            recorders.push(new Recorder());
            return recorders.at(-1) as Recorder;
          });
          node.to(name === 'a' ? 'b' : 'a');
          return node;
        };
        const nodes: [Node, Node] = [start('a'), start('b')];
        const open = (): void => {
          for (const [index, node] of nodes.entries()) {
            const link = node.to(names[1 - index] as string);
            if (link.state === 'lost') continue;
            recorders.push(new Recorder());
            link.openStream('any', EMPTY, recorders.at(-1) as Recorder).send(Buffer.from('x'), true);
          }
        };
        for (const { who, afterMs } of restarts) {
          open();
          net.clock.run(afterMs);
          nodes[who]?.transport.kill();
          nodes[who] = start(names[who] as 'a' | 'b');
        }
        net.clock.run(200);
        Object.assign(net.network.faults, { loss: 0, duplicate: 0, reorder: 0 });
        net.clock.run(8_000);
        for (const recorder of recorders) expect(recorder.ends.length).toBeLessThanOrEqual(1);
        expect(nodes.map((node, index) => node.to(names[1 - index] as string).state)).toEqual(['up', 'up']);
        const before = recorders.length;
        open();
        net.until(() => recorders.slice(before).filter(({ messages }) => messages.length === 1).length === 2, 3_000);
      },
    ),
    RUNS,
  );
});

it('stays within its bounds, and never throws, for any bytes of a peer', () => {
  fc.assert(
    fc.property(fc.nat(), fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 60 }), fc.boolean(), (seed, injected, isNearValid) => {
      const net = new LinkNetwork(seed);
      const a = net.start('a', { limits: { maxIncomingStreams: 10, maxReassemblyBytes: 100_000, maxControlBytes: 100_000 } });
      const b = net.start('b');
      a.links.onStream('any', () => new Recorder());
      a.links.onRequest('any', () => EMPTY);
      const link = a.to('b');
      net.until(() => link.state === 'up' && b.to('a').state === 'up');
      let last = Buffer.alloc(40);
      net.network.onMessage = (subject, payload) => {
        if (subject === 'coordinator.a.in.b') last = Buffer.from(payload.subarray(0, 40));
      };
      net.clock.run(2_500);
      for (const [index, bytes] of injected.entries()) {
        // Behind a valid header, that of the peer's last heartbeat, the random bytes are parsed as frames.
        const header = Buffer.from(last);
        header[1] = 1 + (index % 2);
        header.writeUIntBE(1 + (index % 7), 16, 6);
        net.network.inject('coordinator.a.in.b', isNearValid ? Buffer.concat([header, bytes]) : bytes);
        net.clock.run(1);
        expect(link.retainedBytes).toBeLessThan(300_000);
      }
      net.until(() => link.state === 'up' && b.to('a').state === 'up', 20_000);
      expect(a.events.length).toBeLessThan(injected.length * 3 + 10);
    }),
    { ...RUNS, numRuns: 60 },
  );
});

it('refuses streams over its maximum without retaining anything for them', () => {
  const net = new LinkNetwork(1);
  const a = net.start('a', { limits: { maxIncomingStreams: 5, maxControlBytes: 50_000 } });
  const b = net.start('b');
  const received: Recorder[] = [];
  a.links.onStream('any', () => {
    received.push(new Recorder());
    return received.at(-1) as Recorder;
  });
  const link = a.to('b');
  net.until(() => link.state === 'up' && b.to('a').state === 'up');
  const ends: Recorder[] = [];
  let peak = 0;
  net.network.onMessage = () => {
    peak = Math.max(peak, link.retainedBytes);
  };
  for (let count = 0; count < 3_000; count++) {
    ends.push(new Recorder());
    b.to('a').openStream('any', EMPTY, ends.at(-1) as Recorder);
  }
  net.until(() => ends.filter((each) => each.ends.length === 1).length === 2_995);
  expect([received.length, link.counts.losses]).toEqual([5, 0]);
  expect(peak).toBeLessThan(200_000);
});
