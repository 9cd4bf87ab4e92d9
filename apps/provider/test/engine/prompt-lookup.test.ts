/** Drafts by prompt lookup: what is drafted, and that drafts never change a text. */
import type { TokenLogprob } from '@inference/formats';
import { type Grammar, GrammarBuilder, JsonGrammar, LanguageFactory, SchemaCompiler } from '@inference/json-schema-grammar';
import type { Token } from 'node-llama-cpp';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { Engine } from '../../src/engine/engine.js';
import type { Generation } from '../../src/engine/generation.js';
import { Decoder } from '../../src/engine/process/decoding/decoder.js';
import { MAX_DRAFT } from '../../src/engine/process/decoding/draft-policy.js';
import { PromptLookup } from '../../src/engine/process/decoding/prompt-lookup.js';
import { SequencePool } from '../../src/engine/process/decoding/sequence-pool.js';
import type { NativeContext, NativeSampler } from '../../src/engine/process/native.js';
import { Outbox } from '../../src/engine/process/outbox.js';
import { StreamControl, TextStream } from '../../src/engine/process/output/text-stream.js';
import { TextAssembler, Vocabulary } from '../../src/engine/process/output/token-text.js';
import { ask, demoModel } from '../demo-model.js';

const tokens = (...ids: number[]) => ids as Token[];

/** A lookup that drafts as many tokens as it may. */
function eager(observed: unknown[] = []): PromptLookup {
  return new PromptLookup({
    observe: (...prediction) => observed.push(prediction),
    draftLength: (_matched, max) => Math.min(max, MAX_DRAFT),
  });
}

describe('a draft', () => {
  test('is what followed the latest occurrence of the last three tokens', () => {
    expect(eager().draft(tokens(1, 2, 3, 4, 5, 1, 2, 3, 6, 7, 8, 1, 2), 3 as Token, 3)).toEqual([6, 7, 8]);
  });

  test('follows a match that goes on rather than a later occurrence', () => {
    const lookup = eager();
    const decoded = tokens(9, 8, 1, 2, 3, 4, 5, 1, 2, 3, 6, 7, 9, 8, 1);
    expect(lookup.draft(decoded, 2 as Token, 3)).toEqual([3, 4, 5]);
    expect(lookup.draft([...decoded, 2 as Token], 3 as Token, 3)).toEqual([4, 5, 1]);
  });

  test('continues a repetition beyond the last token', () => {
    const decoded = tokens(...Array.from({ length: 60 }, (_, index) => index % 2));
    expect(eager().draft(decoded, 0 as Token, 100)).toEqual(Array.from({ length: MAX_DRAFT }, (_, index) => (index + 1) % 2));
  });

  test('is empty without an earlier occurrence, or where no token may follow', () => {
    expect(eager().draft(tokens(1, 2, 3, 4, 5), 6 as Token, 20)).toEqual([]);
    expect(eager().draft(tokens(), 1 as Token, 20)).toEqual([]);
    expect(eager().draft(tokens(1, 2, 3, 4, 1, 2), 3 as Token, 0)).toEqual([]);
  });

  test('ends before a placeholder of an image', () => {
    expect(eager().draft(tokens(1, 2, 3, 4, -1, 1, 2), 3 as Token, 20)).toEqual([4]);
  });
});

test('every prediction of a generated token is observed with the length of its match, drafted or not', () => {
  const observed: unknown[] = [];
  const lookup = eager(observed);
  const decoded = tokens(1, 2, 3, 4, 5, 6, 1, 2);
  lookup.draft(decoded, 3 as Token, 0);
  expect(observed).toEqual([]);
  lookup.draft([...decoded, ...tokens(3, 4, 5)], 7 as Token, 0);
  expect(observed).toEqual([
    [3, true],
    [4, true],
    [5, false],
  ]);
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
      const decoder = new Decoder({
        context: machine.context,
        samplers,
        sequences,
        repeatability,
        batchTokens: 512,
        usesGpu: false,
        canDraft,
        computeClock: machine.now,
        outbox,
      });
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

/** Grammar of a list that repeats a few words. */
function listOfWords(): Grammar | null {
  const schema = { type: 'array', items: { enum: ['a b c', 'd e f g'] }, minItems: 20 };
  const builder = new GrammarBuilder();
  return builder.grammar(new SchemaCompiler(new JsonGrammar(builder, new LanguageFactory()), schema, true).value([schema]));
}

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
    ['greedily', { temperature: 0 }, null],
    ['with a seed', { temperature: 0.9, seed: 3 }, null],
    ['with penalties', { temperature: 0.9, seed: 3, frequencyPenalty: 0.2 }, null],
    ['greedily under a schema', { temperature: 0 }, listOfWords()],
  ])('writes the same text and log probabilities alone, with drafts, as beside another stream: %s', async (_how, sampling, grammar) => {
    const base = ask('', 160, sampling);
    const request = { ...base, prompt, logprobs: 2, grammar };
    const alone = await tokensOf(engine.generate(request));
    const [beside] = await Promise.all([
      tokensOf(engine.generate(request)),
      tokensOf(engine.generate({ ...request, sampling: { ...base.sampling, temperature: 1 } })),
    ]);
    expect(alone.length).toBeGreaterThan(100);
    expect(beside).toEqual(alone);
  });
});
