/** `NativeVisionContext`: a context of the vision engine through llama.cpp's C API. Decoding and sampling run one after another. */
import { setImmediate } from 'node:timers/promises';
import type { NativeContext, NativeSampler } from '../process/native.js';
import { callAsync, type LlamaLibrary, nativeMemory, nativeView, type Pointer } from './llama-library.js';
import type { VisionSampler } from './vision-sampler.js';

interface ContextOptions {
  readonly library: LlamaLibrary;
  readonly context: Pointer;
  readonly vocabularySize: number;
  readonly sequences: number;
  /** Maximum tokens of one batch. */
  readonly batchTokens: number;
}

export class NativeVisionContext implements NativeContext {
  readonly #memory: Pointer;
  readonly #batch: Batch;
  /** Settles with the last work on the context. Never rejects. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(private readonly options: ContextOptions) {
    this.#memory = options.library.llama_get_memory(options.context) as Pointer;
    this.#batch = new Batch(options.batchTokens, options.sequences);
  }

  initBatch(): void {
    this.#batch.clear();
  }

  addToBatch(sequence: number, position: number, tokens: Uint32Array, withLogits: Uint32Array): Uint32Array {
    return this.#batch.add(sequence, position, tokens, withLogits);
  }

  decodeBatch(): Promise<void> {
    const { library, context, sequences } = this.options;
    const batch = this.#batch.native();
    // Decodes short batches on this thread: a trip to another one takes as long as a token of a small model.
    const isShort = this.#batch.length <= 2 * sequences;
    return this.exclusively(async () => {
      if (isShort) await handlePendingEvents();
      const code = isShort ? library.llama_decode(context, batch) : await callAsync<number>(library.llama_decode, context, batch);
      if (code !== 0) throw new Error(`llama.cpp could not decode a batch (${code})`);
    });
  }

  /** Runs work on the context after all earlier decoding, sampling and image reading. */
  exclusively<Result>(work: () => Promise<Result> | Result): Promise<Result> {
    const run = this.#last.then(work);
    this.#last = run.catch(() => {});
    return run;
  }

  // A property, because a method would have to satisfy each overload of the interface in its signature.
  readonly sampleToken = ((batchIndex: number, sampler: NativeSampler, ...raw: readonly unknown[]) =>
    this.exclusively(() => {
      if (raw.length === 0) return (sampler as VisionSampler).sample(this.options.context, batchIndex, () => this.#logits(batchIndex));
      // The ignored members ask for the likeliest, the unlikeliest and the drawn token. `rawLogits` always includes the likeliest.
      const [filter, , , , top] = raw[2] as readonly [readonly number[], boolean, boolean, boolean, number];
      return rawLogits(this.#logits(batchIndex), filter, top);
    })) as NativeContext['sampleToken'];

  disposeSequence(sequence: number): void {
    // The range -1 to -1 means all positions.
    this.options.library.llama_memory_seq_rm(this.#memory, sequence, -1, -1);
  }

  removeTokenCellsFromSequence(sequence: number, start: number, end: number): boolean {
    return this.options.library.llama_memory_seq_rm(this.#memory, sequence, start, end) as boolean;
  }

  getSequenceKvCacheMinPosition(sequence: number): number {
    return this.options.library.llama_memory_seq_pos_min(this.#memory, sequence) as number;
  }

  #logits(batchIndex: number): Float32Array {
    const { library, context, vocabularySize } = this.options;
    const pointer = library.llama_get_logits_ith(context, batchIndex) as Pointer | null;
    if (pointer === null) throw new Error('llama.cpp computed no logits for a token');
    return new Float32Array(nativeView(pointer, 4 * vocabularySize));
  }
}

/** Waits two event loop turns, in which the outbox sends the last batch's text, and messages of the daemon arrive, such as a cancel. */
async function handlePendingEvents(): Promise<void> {
  await setImmediate();
  await setImmediate();
}

/** The same tuple as from node-llama-cpp's sampling, with the logits of the likeliest token, of `filter` and of the `top` likeliest. */
function rawLogits(
  logits: Float32Array,
  filter: readonly number[],
  top: number,
): readonly [number, undefined, undefined, number[], number] {
  let best = 0;
  for (let token = 1; token < logits.length; token++) if ((logits[token] as number) > (logits[best] as number)) best = token;
  const max = logits[best] as number;
  let weight = 0;
  for (const logit of logits) weight += Math.exp(logit - max);
  const chosen = new Set([best, ...filter, ...likeliest(logits, top)]);
  return [best, undefined, undefined, [...chosen].flatMap((token) => [token, logits[token] as number]), weight];
}

function likeliest(logits: Float32Array, count: number): number[] {
  if (count === 0) return [];
  const min = Float32Array.from(logits).sort().at(-Math.min(count, logits.length)) as number;
  const tokens: number[] = [];
  for (const [token, logit] of logits.entries()) if (logit >= min) tokens.push(token);
  return tokens.sort((a, b) => (logits[b] as number) - (logits[a] as number) || a - b).slice(0, count);
}

/** `llama_batch` in native memory, reused for every batch. */
class Batch {
  readonly #tokens: Column<Int32Array>;
  readonly #positions: Column<Int32Array>;
  /** Number of sequences of each token: always 1. */
  readonly #sequenceCounts: Column<Int32Array>;
  /** Pointer into `#ids` for each token. */
  readonly #sequences: Column<BigUint64Array>;
  /** 1 for tokens whose logits are computed. */
  readonly #logits: Column<Int8Array>;
  /** Sequence ids from 0. */
  readonly #ids: Column<Int32Array>;
  #length = 0;

  constructor(
    private readonly capacity: number,
    sequences: number,
  ) {
    this.#tokens = column(4 * capacity, (buffer) => new Int32Array(buffer));
    this.#positions = column(4 * capacity, (buffer) => new Int32Array(buffer));
    this.#sequenceCounts = column(4 * capacity, (buffer) => new Int32Array(buffer));
    this.#sequences = column(8 * capacity, (buffer) => new BigUint64Array(buffer));
    this.#logits = column(capacity, (buffer) => new Int8Array(buffer));
    this.#ids = column(4 * sequences, (buffer) => new Int32Array(buffer));
    this.#sequenceCounts.values.fill(1);
    this.#ids.values.set(Array.from({ length: sequences }, (_, id) => id));
  }

  get length(): number {
    return this.#length;
  }

  clear(): void {
    this.#length = 0;
  }

  add(sequence: number, position: number, tokens: Uint32Array, withLogits: Uint32Array): Uint32Array {
    const start = this.#length;
    if (start + tokens.length > this.capacity) throw new Error('a batch has too many tokens');
    for (const [index, token] of tokens.entries()) {
      const row = start + index;
      this.#tokens.values[row] = token;
      this.#positions.values[row] = position + index;
      this.#sequences.values[row] = this.#ids.pointer + 4n * BigInt(sequence);
      this.#logits.values[row] = 0;
    }
    for (const index of withLogits) this.#logits.values[start + index] = 1;
    this.#length += tokens.length;
    return withLogits.map((index) => start + index);
  }

  native(): Record<string, unknown> {
    return {
      n_tokens: this.#length,
      token: this.#tokens.pointer,
      embd: null,
      pos: this.#positions.pointer,
      n_seq_id: this.#sequenceCounts.pointer,
      seq_id: this.#sequences.pointer,
      logits: this.#logits.pointer,
    };
  }
}

interface Column<Values> {
  readonly pointer: Pointer;
  readonly values: Values;
}

function column<Values>(bytes: number, view: (buffer: ArrayBuffer) => Values): Column<Values> {
  const { pointer, buffer } = nativeMemory(bytes);
  return { pointer, values: view(buffer) };
}
