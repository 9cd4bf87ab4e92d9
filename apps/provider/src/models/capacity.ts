/**
 * How many streams of what length a machine can hold beside its models, and what memory each model takes then. Pure: the
 * numbers come in, the plan goes out. What does not fit beside the owner's share is said here, before anything is loaded.
 */
import { drawingBytes, type ImageFacts, type ImageSize, sizesWithin } from './image/image-facts.js';
import type { ModelFacts } from './model-facts.js';

export interface Capacity {
  readonly slots: number;
  /** Tokens of one stream, prompt and answer together. */
  readonly contextSize: number;
  /** Of image models: what can be drawn in the memory that there is, the model's own size first where that is among them. */
  readonly sizes?: readonly ImageSize[];
}

export interface CapacityWishes {
  readonly slots: number | null;
  readonly context: number | null;
  /** Bytes that the model may take, with its caches. */
  readonly budget: number;
}

/** Longest context that is offered unasked. Coding agents send prompts of twenty thousand tokens and more. */
const LONGEST_CONTEXT = 131_072;
/** A context is not shortened below this to gain streams. */
const SHORTEST_CONTEXT = 8192;
/** Nor below this to fit at all. */
const MIN_CONTEXT = 2048;
const MAX_SLOTS = 8;
/** Streams for which a long context is given up. */
const ENOUGH_SLOTS = 4;
/** Part of the memory that models and caches may take; the rest is the owner's. */
const USABLE_PART = 0.6;
/** What a process takes beside weights and cache: buffers of the computation, Node itself. Bytes. */
const OVERHEAD = 200e6;
/** An embedding model reads its text in one batch, whose buffers grow with it. */
const LONGEST_EMBEDDING_CONTEXT = 8192;
/** What becomes of weights in memory: ONNX Runtime keeps some of them a second time, in the order in which a processor uses them. */
const IMAGE_WEIGHTS = { onnx: 1.5, 'stable-diffusion.cpp': 1 } as const;
/** Drawings are made one after the other. */
const IMAGE_SLOTS = 1;
/** Requests for vectors that are let in at once; the engine reads them one after the other. */
const EMBEDDING_SLOTS = 8;

/**
 * Bytes that models may take together. `reserve`: what the owner wants left for other things; null: two fifths. A machine
 * that does not tell its memory sets no ceiling.
 */
export function memoryCeiling(totalMemory: number, reserve: number | null): number {
  if (totalMemory <= 0) return Number.POSITIVE_INFINITY;
  return reserve === null ? USABLE_PART * totalMemory : Math.max(0, totalMemory - reserve);
}

/** What the owner wished for goes first; what was left open is fitted to the budget: the longest context that leaves a few streams. */
export function planCapacity(model: ModelFacts, wishes: CapacityWishes): Capacity {
  if (model.embedding !== null) {
    return {
      slots: wishes.slots ?? EMBEDDING_SLOTS,
      contextSize: Math.min(wishes.context ?? LONGEST_EMBEDDING_CONTEXT, model.trainedContext),
    };
  }
  if (model.image !== null)
    return { slots: IMAGE_SLOTS, contextSize: model.trainedContext, sizes: imageSizes(model, model.image, wishes.budget) };
  const free = wishes.budget - OVERHEAD - model.fileBytes;
  const slotsAt = (contextSize: number): number => Math.floor(free / Math.max(1, model.cacheBytesPerToken * contextSize));
  let contextSize = Math.min(wishes.context ?? LONGEST_CONTEXT, model.trainedContext);
  const shorten = (min: number, enough: number): void => {
    while (wishes.context === null && contextSize > min && slotsAt(contextSize) < enough) {
      contextSize = Math.max(min, Math.floor(contextSize / 2));
    }
  };
  shorten(SHORTEST_CONTEXT, wishes.slots ?? ENOUGH_SLOTS);
  shorten(MIN_CONTEXT, 1);
  return { slots: wishes.slots ?? Math.max(1, Math.min(MAX_SLOTS, slotsAt(contextSize))), contextSize };
}

/** Those that fit; where none does, the smallest, which then says what is missing. */
function imageSizes(model: ModelFacts, facts: ImageFacts, budget: number): readonly ImageSize[] {
  const fitting = sizesWithin(facts, budget - OVERHEAD - IMAGE_WEIGHTS[facts.engine] * model.fileBytes);
  const smallest = facts.sizes.toSorted((a, b) => a.width * a.height - b.width * b.height).slice(0, 1);
  return fitting.length > 0 ? fitting : smallest;
}

/** Bytes that a model takes when it is loaded so. */
export function memoryNeed(model: ModelFacts, { slots, contextSize, sizes }: Capacity): number {
  const { image } = model;
  if (image !== null) {
    return (
      OVERHEAD +
      IMAGE_WEIGHTS[image.engine] * model.fileBytes +
      Math.max(...(sizes ?? image.sizes).map((size) => drawingBytes(image, size)))
    );
  }
  const streams = model.embedding === null ? slots : 1;
  return OVERHEAD + model.fileBytes + model.cacheBytesPerToken * contextSize * streams;
}

/** A model of the owner's list. */
export interface Wanted {
  readonly facts: ModelFacts;
  /** It is never unloaded. */
  readonly always: boolean;
}

export interface Planned<W extends Wanted> {
  readonly wanted: W;
  readonly capacity: Capacity;
  /** Bytes. */
  readonly need: number;
  /** Bytes that it could have at most; less than `need` where it cannot be loaded at all. */
  readonly max: number;
}

/**
 * Plans models that share a machine. Those that always stay share the memory in proportion to their sizes. The others share
 * what is left, if they fit together with some room for streams; else each is planned alone, and they take turns.
 */
export function planModels<W extends Wanted>(
  models: readonly W[],
  { ceiling, slots, context }: { readonly ceiling: number; readonly slots: number | null; readonly context: number | null },
): Planned<W>[] {
  const plan = (wanted: W, budget: number, max: number): Planned<W> => {
    const capacity = planCapacity(wanted.facts, { slots, context, budget });
    return { wanted, capacity, need: memoryNeed(wanted.facts, capacity), max };
  };
  const always = models.filter((model) => model.always);
  const share = (of: readonly W[], model: W, memory: number): number =>
    memory === Number.POSITIVE_INFINITY ? memory : (memory * model.facts.fileBytes) / bytesOf(of);
  const planned = new Map<W, Planned<W>>();
  let left = ceiling;
  for (const model of always) {
    const one = plan(model, share(always, model, ceiling), left);
    planned.set(model, one);
    // What cannot be loaded takes nothing from the others.
    if (one.need <= left) left -= one.need;
  }
  const others = models.filter((model) => !model.always);
  const together = ROOM_FOR_STREAMS * bytesOf(others) + others.length * OVERHEAD <= left;
  for (const model of others) planned.set(model, plan(model, together ? share(others, model, left) : left, left));
  return models.flatMap((model) => planned.get(model) ?? []);
}

/** Models that have this many times their size together stay loaded together. */
const ROOM_FOR_STREAMS = 1.3;

function bytesOf(models: readonly Wanted[]): number {
  return models.reduce((sum, { facts }) => sum + facts.fileBytes, 0);
}

/** Part of the bandwidth that llama.cpp reaches on Apple silicon with one stream, seen in published measurements. */
const REACHED = 0.7;

/** Tokens per second of one stream; null when the bandwidth (GB/s) is not known. */
export function estimatedTokensPerSecond({ activeBytes }: Pick<ModelFacts, 'activeBytes'>, bandwidthGbs: number): number | null {
  if (bandwidthGbs <= 0 || activeBytes <= 0) return null;
  return (REACHED * bandwidthGbs * 1e9) / activeBytes;
}
