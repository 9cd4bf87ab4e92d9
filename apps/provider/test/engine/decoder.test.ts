/**
 * How long a running stream waits for its next token while long prompts are read. Time is simulated: a batch takes its time on a
 * machine of a given speed, so the bound holds on any test machine.
 */
import type { Token } from 'node-llama-cpp';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Ended } from '../../src/engine/messages.js';
import { Decoder } from '../../src/engine/process/decoding/decoder.js';
import type { Repeatability } from '../../src/engine/process/decoding/repeatability.js';
import { SequencePool } from '../../src/engine/process/decoding/sequence-pool.js';
import type { NativeContext, NativeSampler } from '../../src/engine/process/native.js';
import { Outbox } from '../../src/engine/process/outbox.js';
import { StreamControl, TextStream } from '../../src/engine/process/output/text-stream.js';
import { type StreamText, TextAssembler, Vocabulary } from '../../src/engine/process/output/token-text.js';

/** Maximum wait beyond the decoding time, in milliseconds; a slice of fixed size may take longer. */
const BOUND_MS = 100;
/** The same for prompts that can be cut anywhere: one round with its overhead per batch. */
const FREE_SLICES_MS = 35;
const BATCH_TOKENS = 512;
const TEXT = 'a';

/** Milliseconds per batch and per row, as measured with the demo model and a model of 60 million parameters. */
const MACHINES = [
  ['the demo model', 0.15, 0.3],
  ['sixty million parameters', 4, 1.4],
] as const;

let now = 0;
beforeEach(() => {
  now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
});
afterEach(() => vi.restoreAllMocks());

interface Batch {
  /** Rows of each sequence. */
  readonly rows: ReadonlyMap<number, number>;
  readonly took: number;
}

class Machine {
  readonly batches: Batch[] = [];
  #rows = new Map<number, number>();
  #attentionMs = 0;

  /** @param attentionMs Time of attention for the rows of a sequence after so many tokens, in milliseconds. */
  constructor(
    private readonly perBatch: number,
    private readonly perRow: number,
    private readonly attentionMs: (rows: number, context: number) => number = () => 0,
  ) {}

  readonly context: NativeContext = {
    initBatch: () => {
      this.#rows = new Map();
      this.#attentionMs = 0;
    },
    addToBatch: (sequence, position, tokens, wanted) => {
      this.#rows.set(sequence, tokens.length);
      this.#attentionMs += this.attentionMs(tokens.length, position);
      return wanted;
    },
    decodeBatch: async () => {
      // Time passes after the call, as on the compute thread: text of the previous batch is written meanwhile.
      await null;
      const rows = this.#rows;
      const took = this.perBatch + this.perRow * [...rows.values()].reduce((sum, each) => sum + each, 0) + this.#attentionMs;
      now += took;
      this.batches.push({ rows, took });
    },
    sampleToken: (async () => 1) as unknown as NativeContext['sampleToken'],
    disposeSequence: () => {},
    removeTokenCellsFromSequence: () => true,
    getSequenceKvCacheMinPosition: () => 0,
  };
}

const sampler: NativeSampler = { applyConfig: () => {}, dispose: () => {} };
const samplers = { newSampler: () => sampler };
const vocabulary = new Vocabulary({ tokens: ['', TEXT], types: [], kind: 'llama', detokenize: () => TEXT }, []);

interface Wanted {
  readonly prompt: number;
  readonly limit: number;
  readonly repeatable: boolean;
  readonly onToken?: () => void;
}

/** Runs the streams to their ends, all added at once, and resolves to their ends. */
async function run(
  machine: Machine,
  repeatability: Repeatability,
  wanted: readonly Wanted[],
  { canDraft = false, count = wanted.length } = {},
): Promise<Ended[]> {
  const ends: Ended[] = [];
  let over: () => void = () => {};
  const done = new Promise<void>((resolve) => (over = resolve));
  const outbox = new Outbox((message, written) => {
    if (message.type === 'tick') ends.push(...message.ended);
    written();
    if (ends.length === wanted.length) over();
  });
  const sequences = new SequencePool(machine.context, { count, grain: 1, minRest: 1, window: null, now: () => now });
  const decoder = new Decoder({
    context: machine.context,
    samplers,
    sequences,
    repeatability,
    batchTokens: BATCH_TOKENS,
    usesGpu: false,
    canDraft,
    computeClock: () => now,
    outbox,
  });
  for (const [job, { prompt, limit, repeatable, onToken }] of wanted.entries()) {
    decoder.add(
      new TextStream({
        control: new StreamControl(job),
        prompt: Array.from({ length: prompt }, () => 1 as Token),
        media: [],
        startsInsideThinking: false,
        scope: null,
        repeatable,
        limit,
        sampler,
        text: onToken === undefined ? new TextAssembler(vocabulary) : telling(onToken),
        logprobs: null,
        isEnd: () => false,
        outbox,
        onEnd: () => {},
      }),
    );
  }
  await done;
  return ends;
}

/** Calls back for each token. */
function telling(onToken: () => void): TextAssembler {
  const text: StreamText = {
    push: () => {
      onToken();
      return TEXT;
    },
    end: () => '',
  };
  return text as TextAssembler;
}

const SHARED: Repeatability = { minRows: 1, slice: 64, exactDrafts: true };
const APART: Repeatability = { minRows: null, slice: 128, exactDrafts: false };

describe.each(MACHINES)('on a machine with %s', (_what, perBatch, perRow) => {
  test.each([
    ['one long prompt', 1, false, SHARED],
    ['one long repeatable prompt', 1, true, SHARED],
    ['five long prompts', 5, false, SHARED],
    ['five long repeatable prompts', 5, true, SHARED],
    ['a long prompt that is cut at fixed places, as on a GPU', 1, true, APART],
  ] as const)('a running stream does not stall for %s', async (_case, prompts, repeatable, repeatability) => {
    const machine = new Machine(perBatch, perRow);
    const seen: number[] = [];
    const waits: number[] = [];
    let last = 0;
    const running: Wanted = {
      prompt: 5,
      limit: 400,
      repeatable: false,
      onToken: () => {
        const { length } = seen;
        seen.push(machine.batches.length);
        if (length > 0) {
          // Time of batches without this stream.
          const others = machine.batches.slice(last).filter(({ rows }) => !rows.has(0));
          waits.push(others.reduce((sum, { took }) => sum + took, 0));
        }
        last = machine.batches.length;
      },
    };
    const long: Wanted = { prompt: 3000, limit: 2, repeatable };
    const ends = await run(machine, repeatability, [running, ...Array.from({ length: prompts }, () => long)]);
    expect(ends.map(({ kind }) => kind)).toEqual(ends.map(() => 'finished'));
    expect(seen).toHaveLength(400);
    const sliceMs = repeatability === APART ? perBatch + perRow * APART.slice : 0;
    expect(Math.max(...waits)).toBeLessThanOrEqual(repeatable ? Math.max(BOUND_MS, sliceMs) : FREE_SLICES_MS);
    // The prompts were read meanwhile, in slices worth a batch.
    const read = machine.batches.filter(({ rows }) => [...rows.values()].some((count) => count > 1));
    expect(read.length).toBeGreaterThan(5 * prompts);
    expect(read.length).toBeLessThan((prompts * 3000) / 12);
    // In the middle of the prompts, the stream had a round for every 30 ms of prompt time.
    const end = machine.batches.lastIndexOf(read.at(-1) as Batch);
    const rounds = seen.filter((batch) => batch <= end).length;
    expect(read.reduce((sum, { took }) => sum + took, 0) / rounds).toBeLessThanOrEqual(sliceMs > 0 ? 35 : BOUND_MS);
  });
});

test.each([
  ['in tiles of 64 rows', 0.25],
  ['row by row', 1],
])('a running stream does not stall beside a long context, with attention %s', async (_case, shareInTiles) => {
  const attentionMs = (rows: number, context: number) => 3e-4 * context * (rows < 64 ? rows : shareInTiles * 64 * Math.ceil(rows / 64));
  const machine = new Machine(0.15, 0.05, attentionMs);
  await run(machine, SHARED, [
    { prompt: 5, limit: 8000, repeatable: false },
    { prompt: 20_000, limit: 1, repeatable: false },
  ]);
  const reads = machine.batches.filter(({ rows }) => rows.has(1));
  const times = reads.map(({ took }) => took).sort((a, b) => a - b);
  expect(times[Math.floor(0.97 * times.length)]).toBeLessThanOrEqual(FREE_SLICES_MS);
  // A size is measured once, even if it takes longer.
  expect(times.at(-1)).toBeLessThan(5 * FREE_SLICES_MS);
  // The stream does not wait longer on average.
  const rounds = machine.batches.slice(0, machine.batches.lastIndexOf(reads.at(-1) as Batch)).filter(({ rows }) => rows.has(0));
  expect(times.reduce((sum, took) => sum + took, 0) / rounds.length).toBeLessThanOrEqual(30);
});

test('after a slice that takes longer than its round, streams run rounds without prompts', async () => {
  // Even a single row takes longer than the time for prompts in a round.
  const machine = new Machine(100, 3);
  await run(machine, SHARED, [
    { prompt: 5, limit: 400, repeatable: false },
    { prompt: 1000, limit: 1, repeatable: false },
  ]);
  const reads = machine.batches.filter(({ rows }) => rows.has(1));
  const rounds = machine.batches.slice(0, machine.batches.lastIndexOf(reads.at(-1) as Batch)).filter(({ rows }) => rows.has(0));
  expect(Math.min(...reads.map(({ took }) => took))).toBeGreaterThan(100);
  expect(reads.reduce((sum, { took }) => sum + took, 0) / rounds.length).toBeLessThanOrEqual(BOUND_MS + 5);
});

test('without waiting streams, a prompt is read in whole batches', async () => {
  const machine = new Machine(4, 1.4);
  await run(machine, SHARED, [{ prompt: 3000, limit: 2, repeatable: false }]);
  expect(machine.batches.map(({ rows }) => rows.get(0))).toEqual([512, 512, 512, 512, 512, 440, 1]);
});

test.each([
  ['any cut', SHARED, [500, 500, 500, 500, 500, 500]],
  ['one cut only', APART, [...Array.from({ length: 23 }, () => 128), 56]],
] as const)(
  'where nobody waits, a repeatable prompt is read in large batches, where numbers are the same in %s',
  async (_what, repeatability, expected) => {
    const machine = new Machine(4, 1.4);
    await run(machine, repeatability, [{ prompt: 3000, limit: 1, repeatable: true }]);
    expect(machine.batches.map(({ rows }) => rows.get(0))).toEqual(expected);
  },
);

test('no slice of a repeatable prompt is smaller than the bit-exact minimum', async () => {
  for (let prompt = 64; prompt < 1200; prompt += 7) {
    const machine = new Machine(4, 1.4);
    await run(machine, SHARED, [
      { prompt: 5, limit: 40, repeatable: false },
      { prompt, limit: 1, repeatable: true },
    ]);
    const slices = machine.batches.map(({ rows }) => rows.get(1) ?? 0).filter((rows) => rows > 0);
    expect(slices.reduce((sum, rows) => sum + rows)).toBe(prompt);
    expect(Math.min(...slices), `of ${prompt} tokens`).toBeGreaterThanOrEqual(64);
  }
});

/** Sequences in the order in which their prompts were read, without repetitions in a row. */
function orderOf({ batches }: Machine): number[] {
  const read = batches.flatMap(({ rows }) => [...rows].filter(([, count]) => count > 1).map(([sequence]) => sequence));
  return read.filter((sequence, index) => sequence !== read[index - 1]);
}

test('prompts of equal length are read one after another', async () => {
  const machine = new Machine(4, 1.4);
  await run(machine, SHARED, Array(3).fill({ prompt: 3000, limit: 1, repeatable: false }));
  expect(orderOf(machine)).toEqual([0, 1, 2]);
});

test('a short prompt is read before the rest of a long one', async () => {
  const machine = new Machine(4, 1.4);
  const [long, short] = [3000, 300].map((prompt) => ({ prompt, limit: 1, repeatable: false }));
  await run(machine, SHARED, [long as Wanted, short as Wanted]);
  // The first prompt was alone for one slice.
  expect(orderOf(machine)).toEqual([0, 1, 0]);
});

test('short prompts that arrive later do not starve a long one', async () => {
  const machine = new Machine(4, 1.4);
  // Two slots, so that each further prompt is admitted when the one before has ended.
  const wanted = [3000, ...Array<number>(40).fill(300)].map((prompt) => ({ prompt, limit: 1, repeatable: false }));
  await run(machine, SHARED, wanted, { count: 2 });
  const longEnds = machine.batches.findLastIndex(({ rows }) => rows.has(0) && (rows.get(0) as number) > 300);
  const before = machine.batches.slice(0, longEnds).filter(({ rows }) => rows.has(1));
  // The long prompt is due after 3,000 tokens: 512 of its own, and the next eight short prompts, the last of which ends at 2,912.
  expect(before.length).toBe(8);
});

test('tokens are drafted only while a stream runs alone', async () => {
  const machine = new Machine(4, 1.4);
  const stream = { prompt: 5, repeatable: false };
  await run(
    machine,
    SHARED,
    [
      { ...stream, limit: 100 },
      { ...stream, limit: 200 },
    ],
    { canDraft: true },
  );
  const rounds = machine.batches.slice(2);
  const shared = rounds.filter(({ rows }) => rows.size === 2);
  expect(shared.flatMap(({ rows }) => [...rows.values()])).toEqual(shared.flatMap(() => [1, 1]));
  expect(shared.length).toBeGreaterThan(95);
  expect(Math.max(...rounds.flatMap(({ rows }) => [...rows.values()]))).toBeGreaterThan(8);
});
