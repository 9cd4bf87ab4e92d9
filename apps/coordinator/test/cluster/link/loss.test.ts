/** Handlers that send, open or close while a link is lost or comes up. */
import { expect, it } from 'vitest';
import { LinkNetwork, Recorder } from '../link-fixture.js';

const EMPTY = new Uint8Array(0);

function pair(seed: number) {
  const net = new LinkNetwork(seed);
  const a = net.start('a');
  const b = net.start('b');
  b.links.onStream('any', () => new Recorder());
  const link = a.to('b');
  net.until(() => link.state === 'up' && b.to('a').state === 'up');
  return { net, a, b, link };
}

it('drops messages that handlers of ended streams send', () => {
  const { net, a, b, link } = pair(1);
  const streams = [0, 1].map((index) =>
    link.openStream('any', EMPTY, {
      onMessage: () => {},
      onClosed: () => {
        const other = streams[1 - index];
        other?.send(Buffer.from('late'), true);
        other?.sendControl(Buffer.from('late'));
        other?.abort('late');
      },
    }),
  );
  net.until(() => b.to('a').streamCount === 2);
  net.network.faults.loss = 1;
  net.until(() => link.state === 'lost' && b.to('a').state === 'lost');
  net.network.faults.loss = 0;
  net.until(() => link.state === 'up' && b.to('a').state === 'up');
  net.clock.run(1_000);
  expect(link.retainedBytes).toBe(0);
  expect([link.counts.losses, b.to('a').counts.losses]).toEqual([1, 1]);
  expect([...a.events, ...b.events].map(({ event }) => event)).not.toContain('malformed');
});

it('stays closed if a listener closes it when it comes up', () => {
  const net = new LinkNetwork(2);
  const a = net.start('a');
  net.start('b').to('a');
  const link = a.to('b');
  link.onUp(() => link.close());
  link.openStream('any', EMPTY, new Recorder());
  net.until(() => link.state === 'closed');
  net.clock.run(5_000);
  expect(link.state).toBe('closed');
  expect(a.events.map(({ event }) => event)).toEqual(['up', 'lost']);
});

it('stays closed if a listener closes it when the peer restarts', () => {
  const { net, b, link } = pair(3);
  link.onLost(() => link.close());
  b.transport.kill();
  net.start('b').to('a');
  net.until(() => link.state === 'closed');
  net.clock.run(5_000);
  expect([link.state, link.counts.losses]).toEqual(['closed', 1]);
});
