/** Drafts by prompt lookup: what is drafted, what rejected drafts may cost, and that drafts never change a text. */
import type { TokenLogprob } from '@inference/formats';
import type { Token } from 'node-llama-cpp';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { Engine } from '../../src/engine/engine.js';
import type { Generation } from '../../src/engine/generation.js';
import { Decoder } from '../../src/engine/process/decoding/decoder.js';
import { DraftCost, MAX_DRAFT, PromptLookup } from '../../src/engine/process/decoding/prompt-lookup.js';
import { SequencePool } from '../../src/engine/process/decoding/sequence-pool.js';
import type { NativeContext, NativeSampler } from '../../src/engine/process/native.js';
import { Outbox } from '../../src/engine/process/outbox.js';
import { StreamControl, TextStream } from '../../src/engine/process/output/text-stream.js';
import { TextAssembler, Vocabulary } from '../../src/engine/process/output/token-text.js';
import { ask, demoModel } from '../demo-model.js';

const tokens = (...ids: number[]) => ids as Token[];

/** A lookup with enough allowance for any draft. */
function generous(): PromptLookup {
  const lookup = new PromptLookup(new DraftCost());
  lookup.verified(1, 1000, 0);
  return lookup;
}

describe('a draft', () => {
  test('is what followed the latest occurrence of the last three tokens', () => {
    expect(generous().draft(tokens(1, 2, 3, 4, 5, 1, 2, 3, 6, 7, 8, 1, 2), 3 as Token, 3)).toEqual([6, 7, 8]);
  });

  test('is as long as the match', () => {
    expect(generous().draft(tokens(9, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 2), 3 as Token, 20)).toEqual([4, 5, 6]);
    expect(generous().draft(tokens(9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2), 3 as Token, 20)).toEqual([4, 5, 6, 7]);
  });

  test('continues a repetition beyond the last token', () => {
    const lookup = generous();
    const decoded = tokens(...Array.from({ length: 60 }, (_, index) => index % 2));
    expect(lookup.draft(decoded, 0 as Token, 100)).toEqual(Array.from({ length: MAX_DRAFT }, (_, index) => (index + 1) % 2));
  });

  test('is empty without an earlier occurrence, or where no token may follow', () => {
    expect(generous().draft(tokens(1, 2, 3, 4, 5), 6 as Token, 20)).toEqual([]);
    expect(generous().draft(tokens(), 1 as Token, 20)).toEqual([]);
    expect(generous().draft(tokens(1, 2, 3, 4, 1, 2), 3 as Token, 0)).toEqual([]);
  });
});

test('drafts that are always rejected cost at most 2 % of the rounds, after the first few', () => {
  const cost = new DraftCost();
  const lookup = new PromptLookup(cost);
  const decoded: Token[] = [];
  const roundMs = 10;
  cost.addRound(roundMs);
  let extraMs = 0;
  const rounds = 5000;
  for (let round = 0; round < rounds; round++) {
    const next = ((round * round) % 3) as Token;
    const draft = lookup.draft(decoded, next, 100);
    decoded.push(next);
    if (draft.length === 0) continue;
    const took = roundMs * (1 + 0.4 * draft.length);
    extraMs += took - roundMs;
    lookup.verified(draft.length, 0, took);
  }
  expect(extraMs).toBeGreaterThan(0);
  expect(extraMs / roundMs).toBeLessThan(0.02 * rounds + 6);
});

/** A context whose model continues the digits of 1/7 for ever. It checks that each position is decoded once. */
class Machine {
  readonly rows: number[] = [];
  #now = 0;
  #cells = 0;
  #batch: number[] = [];

  readonly now = () => this.#now;
  readonly context: NativeContext = {
    initBatch: () => {},
    addToBatch: (_sequence, position, batch, wanted) => {
      if (position !== this.#cells) throw new Error(`position ${position} after ${this.#cells} cells`);
      this.#batch = [...batch];
      this.#cells += batch.length;
      return wanted;
    },
    decodeBatch: async () => {
      this.rows.push(this.#batch.length);
      this.#now += 10 + this.#batch.length;
    },
    sampleToken: (async (place: number) => DIGITS.at((DIGITS.indexOf(this.#batch[place] as number) + 1) % DIGITS.length)) as never,
    disposeSequence: () => {
      this.#cells = 0;
    },
    removeTokenCellsFromSequence: (_sequence, start) => {
      this.#cells = Math.min(this.#cells, start);
      return true;
    },
    getSequenceKvCacheMinPosition: () => 0,
  };
}

const DIGITS = [1, 4, 2, 8, 5, 7];
const sampler: NativeSampler = { applyConfig: () => {}, dispose: () => {} };
const samplers = { newSampler: () => sampler };
const vocabulary = new Vocabulary({ tokens: [...'0123456789'], types: [], kind: 'llama', detokenize: (token) => String(token) }, []);

describe('the decoder', () => {
  let machine: Machine;
  beforeEach(() => {
    machine = new Machine();
    vi.spyOn(performance, 'now').mockImplementation(machine.now);
  });
  afterEach(() => vi.restoreAllMocks());

  /** Runs one stream and resolves to its text and number of tokens. */
  async function run(prompt: readonly Token[], limit: number, canDraft: boolean, repeatable = false) {
    let text = '';
    let count = 0;
    await new Promise<void>((resolve) => {
      const outbox = new Outbox((message, written) => {
        if (message.type === 'tick') {
          for (const [index, piece] of message.pieces.entries()) {
            if (index % 3 === 2) text += piece;
            if (index % 3 === 1) count += piece as number;
          }
          if (message.ended.length > 0) resolve();
        }
        written();
      });
      const sequences = new SequencePool(machine.context, { count: 1, grain: 1, minRest: 1, window: null, now: machine.now });
      const repeatability = { minRows: 1, slice: 64, exactDrafts: false } as const;
      const decoder = new Decoder({ context: machine.context, samplers, sequences, repeatability, batchTokens: 512, canDraft, outbox });
      const stream = {
        media: [],
        startsInsideThinking: false,
        scope: null,
        logprobs: null,
        isEnd: () => false,
        onEnd: () => {},
        outbox,
        sampler,
      };
      const control = new StreamControl(1);
      decoder.add(new TextStream({ ...stream, control, prompt, repeatable, limit, text: new TextAssembler(vocabulary) }));
    });
    return { text, count };
  }

  const EXPECTED = '428571'.repeat(34).slice(0, 200);

  test('decodes drafts in far fewer batches, with the same text and token count', async () => {
    expect(await run(tokens(1), 200, true)).toEqual({ text: EXPECTED, count: 200 });
    expect(machine.rows.length).toBeLessThan(40);
    expect(Math.max(...machine.rows)).toBe(MAX_DRAFT + 1);
  });

  test('drops the positions of rejected drafts', async () => {
    // The prompt misleads: after 5, 7, 1 came 9.
    expect(await run(tokens(4, 2, 8, 5, 7, 1, 9, 9, 4, 2, 8, 5, 7, 1), 200, true)).toEqual({ text: EXPECTED, count: 200 });
    expect(machine.rows.length).toBeLessThan(40);
  });

  test.each([
    ['a cache that cannot drop tokens', false, false],
    ['repeatable streams on kernels whose results depend on the batch', true, true],
  ])('never drafts for %s', async (_case, canDraft, repeatable) => {
    expect(await run(tokens(1), 200, canDraft, repeatable)).toEqual({ text: EXPECTED, count: 200 });
    expect(machine.rows).toEqual(Array.from({ length: 200 }, () => 1));
  });
});

/** Tokens with their log probabilities. */
async function tokensOf(generation: Generation): Promise<readonly TokenLogprob[]> {
  const all: TokenLogprob[] = [];
  for await (const batch of generation) for (const { logprobs = [] } of batch) all.push(...logprobs);
  return all;
}

describe('the demo model', () => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await Engine.start({ settings: { modelPath: demoModel(), slots: 2, contextSize: 1024, gpu: 'none' } });
  });
  afterAll(() => engine.close());

  // The model continues the letters, with and without errors, so drafts are accepted in part.
  const prompt = { type: 'text', text: 'a b c d e f g h '.repeat(20) } as const;

  test.each([
    ['greedily', { temperature: 0 }],
    ['with a seed', { temperature: 0.9, seed: 3 }],
    ['with penalties', { temperature: 0.9, seed: 3, frequencyPenalty: 0.2 }],
  ])('writes the same text and log probabilities alone, with drafts, as beside another stream: %s', async (_how, sampling) => {
    const base = ask('', 160, sampling);
    const request = { ...base, prompt, logprobs: 2 };
    const alone = await tokensOf(engine.generate(request));
    const [beside] = await Promise.all([
      tokensOf(engine.generate(request)),
      tokensOf(engine.generate({ ...request, sampling: { ...base.sampling, temperature: 1 } })),
    ]);
    expect(alone.length).toBeGreaterThan(100);
    expect(beside).toEqual(alone);
  });
});
