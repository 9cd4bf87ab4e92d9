import { expect, it } from 'vitest';
import { PeerSilence } from '../../../src/cluster/link/peer-silence.js';

type State = Parameters<PeerSilence['advance']>[2];

/** Milliseconds until the link is lost, in ticks of 100, and why. Null after 20 s. */
function lossOf(silence: PeerSilence, state: State, isConnected = true): readonly [number, string] | null {
  for (let ms = 100; ms <= 20_000; ms += 100) {
    const reason = silence.advance(ms, isConnected, state);
    if (reason !== null) return [ms, reason];
  }
  return null;
}

it.each([
  ['up', true, false, [3_100, 'silent']],
  ['up', true, true, [1_600, 'no_responders']],
  ['connecting', true, false, [3_100, 'silent']],
  ['connecting', true, true, [3_100, 'no_responders']],
  ['up', false, true, [10_100, 'transport_disconnected']],
  ['connecting', false, false, [10_100, 'transport_disconnected']],
  ['lost', true, true, null],
  ['lost', false, false, null],
] as const)(
  'a link that is %s, transport connected %s, no responders %s, is lost after %j',
  (state, isConnected, noResponders, expected) => {
    const silence = new PeerSilence(0);
    if (noResponders) silence.noResponders();
    expect(lossOf(silence, state, isConnected)).toEqual(expected);
  },
);

it('an envelope of the peer ends the silence and the hint of the server', () => {
  const silence = new PeerSilence(-2_900);
  silence.noResponders();
  for (let ms = -2_800; ms <= -1_400; ms += 100) silence.advance(ms, true, 'up');
  silence.heard();
  silence.advance(0, true, 'up');
  expect(lossOf(silence, 'up')).toEqual([2_900, 'silent']);
});

it('a reconnected transport ends the pause', () => {
  const silence = new PeerSilence(-9_900);
  for (let ms = -9_800; ms <= 0; ms += 100) expect(silence.advance(ms, false, 'up')).toBeNull();
  silence.resumed();
  expect(lossOf(silence, 'up', false)).toEqual([10_100, 'transport_disconnected']);
});

it('a stall counts as two ticks of silence', () => {
  const silence = new PeerSilence(0);
  expect(silence.advance(60_000, true, 'up')).toBeNull();
  expect(silence.advance(62_800, true, 'up')).toBeNull();
});
