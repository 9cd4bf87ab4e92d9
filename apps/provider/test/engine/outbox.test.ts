import { expect, test, vi } from 'vitest';
import type { FromEngine } from '../../src/engine/messages.js';
import { Outbox } from '../../src/engine/process/outbox.js';

type Tick = FromEngine & { type: 'tick' };

function recorder() {
  const ticks: Tick[] = [];
  const written: (() => void)[] = [];
  const outbox = new Outbox((message, done) => {
    ticks.push(message as Tick);
    written.push(done);
  });
  return { ticks, written, outbox };
}

/** Also on a busy machine, where the timer fires together with the awaited event. */
const soon = async () => {
  await new Promise((resolve) => setTimeout(resolve, 20));
  for (let turns = 0; turns < 3; turns++) await new Promise((resolve) => setImmediate(resolve));
};

test('all events of one tick travel in one message, in order', async () => {
  const { ticks, outbox } = recorder();
  outbox.started({ job: 1, promptTokens: 3, startsInsideThinking: false });
  outbox.piece(1, 1, 'a');
  outbox.piece(2, 2, 'b');
  outbox.ended({ job: 2, kind: 'cancelled' });
  await soon();
  expect(ticks).toEqual([
    {
      type: 'tick',
      started: [{ job: 1, promptTokens: 3, startsInsideThinking: false }],
      pieces: [1, 1, 'a', 2, 2, 'b'],
      logprobs: [],
      ended: [{ job: 2, kind: 'cancelled' }],
    },
  ]);
});

test('first text and end of a stream skip the gap, text in between waits', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  try {
    const { ticks, written, outbox } = recorder();
    /** Lets immediates run, but no time pass. */
    const turn = async () => {
      for (let turns = 0; turns < 4; turns++) await new Promise((resolve) => setImmediate(resolve));
      written.shift()?.();
    };
    const texts = () => ticks.map(({ pieces }) => pieces.filter((_, index) => index % 3 === 2).join(''));
    outbox.started({ job: 1, promptTokens: 3, startsInsideThinking: false });
    vi.advanceTimersByTime(500);
    await turn();
    expect(ticks).toEqual([]);
    outbox.piece(1, 1, 'a');
    await turn();
    expect(texts()).toEqual(['a']);
    expect(ticks[0]?.started).toHaveLength(1);
    outbox.piece(1, 1, 'b');
    await turn();
    expect(texts()).toEqual(['a']);
    outbox.started({ job: 2, promptTokens: 3, startsInsideThinking: false });
    outbox.piece(2, 1, 'c');
    await turn();
    expect(texts()).toEqual(['a', 'bc']);
    outbox.piece(1, 1, 'd');
    vi.advanceTimersByTime(20);
    await turn();
    expect(texts()).toEqual(['a', 'bc', 'd']);
    outbox.piece(1, 1, 'e');
    outbox.ended({ job: 1, kind: 'finished', reason: 'stop', completionTokens: 4 });
    await turn();
    expect(texts()).toEqual(['a', 'bc', 'd', 'e']);
    expect(ticks.at(-1)?.ended).toHaveLength(1);
  } finally {
    vi.useRealTimers();
  }
});

test('log probabilities travel beside the pieces of their streams', async () => {
  const { ticks, outbox } = recorder();
  const logprobs = [{ token: 'b', logprob: -1, bytes: [98], top_logprobs: [] }];
  outbox.piece(1, 1, 'a');
  outbox.piece(2, 1, 'b', logprobs);
  await soon();
  expect(ticks).toMatchObject([{ pieces: [1, 1, 'a', 2, 1, 'b'], logprobs: [{ job: 2, logprobs }] }]);
});

test('while a message is being written the next one grows', async () => {
  const { ticks, written, outbox } = recorder();
  outbox.piece(1, 1, 'a');
  await soon();
  outbox.piece(1, 1, 'b');
  await soon();
  outbox.piece(1, 1, 'c');
  await soon();
  expect(ticks).toHaveLength(1);
  written[0]?.();
  await soon();
  expect(ticks.map(({ pieces }) => pieces)).toEqual([
    [1, 1, 'a'],
    [1, 1, 'b', 1, 1, 'c'],
  ]);
});

test('streams wait while thousands of pieces are unsent', async () => {
  const { ticks, written, outbox } = recorder();
  outbox.piece(1, 1, 'a');
  await soon();
  let pieces = 0;
  while (outbox.untilReady() === null) {
    outbox.piece(1, 1, 'x');
    pieces += 1;
  }
  expect(pieces).toBe(8192);
  let resumed = false;
  void outbox.untilReady()?.then(() => (resumed = true));
  await soon();
  expect(resumed).toBe(false);
  written[0]?.();
  await soon();
  expect(resumed).toBe(true);
  expect(ticks).toHaveLength(2);
});

test('progress on prompts is reported at intervals', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  try {
    const { ticks, written, outbox } = recorder();
    for (let passedMs = 0; passedMs < 2500; passedMs += 20) {
      outbox.worked();
      for (const done of written.splice(0)) done();
      vi.advanceTimersByTime(20);
      for (let turns = 0; turns < 3; turns++) await new Promise((resolve) => setImmediate(resolve));
    }
    expect(ticks.length).toBeGreaterThanOrEqual(2);
    expect(ticks.length).toBeLessThanOrEqual(4);
    for (const tick of ticks) expect(tick).toEqual({ type: 'tick', started: [], pieces: [], logprobs: [], ended: [] });
  } finally {
    vi.useRealTimers();
  }
});
