/**
 * Plans slots and context length of models, and the memory of each. Pure. Models that do not fit beside the owner's reserve are
 * detected before loading.
 */
import { type ImageFacts, type ImageSize, imageJobBytes, sizesWithin } from './image/image-facts.js';
import type { ModelFacts } from './model-facts.js';

export interface Capacity {
  readonly slots: number;
  /** Tokens of one sequence, prompt and answer together. */
  readonly contextSize: number;
  /** Image models only: sizes that fit the memory, the native size first if included. */
  readonly sizes?: readonly ImageSize[];
}

interface CapacityRequest {
  readonly slots: number | null;
  readonly context: number | null;
  /** Maximum bytes of the model with its caches. */
  readonly budget: number;
}

/** Longest default context. Coding agents send prompts of 20,000 tokens and more. */
const LONGEST_CONTEXT = 131_072;
/** Lower bound for shortening the context to gain slots. */
const SHORTEST_CONTEXT = 8192;
/** Lower bound for shortening the context to fit at all. */
const MIN_CONTEXT = 2048;
const MAX_SLOTS = 8;
/** Slots for which a long context is shortened. */
const ENOUGH_SLOTS = 4;
/** Share of memory for models and caches; the rest is the owner's. */
const USABLE_PART = 0.6;
/** Process overhead beside weights and cache, in bytes: compute buffers and Node. */
const OVERHEAD = 200e6;
/** Embedding models read a text in one batch, whose buffers grow with the context. */
const LONGEST_EMBEDDING_CONTEXT = 8192;
/** Memory per byte of weights: ONNX Runtime stores some weights a second time, in CPU layout. */
const IMAGE_WEIGHTS = { onnx: 1.5, 'stable-diffusion.cpp': 1 } as const;
/** Image jobs run in sequence. */
const IMAGE_SLOTS = 1;
/** Admitted concurrent embedding requests; the engine computes them in sequence. */
const EMBEDDING_SLOTS = 8;

/**
 * Maximum bytes of all models. `reserve`: bytes left to the owner; null: two fifths of memory. Unlimited if the total memory is
 * unknown.
 */
export function memoryCeiling(totalMemory: number, reserve: number | null): number {
  if (totalMemory <= 0) return Number.POSITIVE_INFINITY;
  return reserve === null ? USABLE_PART * totalMemory : Math.max(0, totalMemory - reserve);
}

/** Applies the owner's settings first and fits the rest to the budget: the longest context that leaves a few slots. */
export function planCapacity(model: ModelFacts, requested: CapacityRequest): Capacity {
  if (model.embedding !== null) {
    return {
      slots: requested.slots ?? EMBEDDING_SLOTS,
      contextSize: Math.min(requested.context ?? LONGEST_EMBEDDING_CONTEXT, model.trainedContext),
    };
  }
  if (model.image !== null)
    return { slots: IMAGE_SLOTS, contextSize: model.trainedContext, sizes: imageSizes(model, model.image, requested.budget) };
  const free = requested.budget - OVERHEAD - model.fileBytes;
  const slotsAt = (contextSize: number): number => Math.floor(free / Math.max(1, model.cacheBytesPerToken * contextSize));
  let contextSize = Math.min(requested.context ?? LONGEST_CONTEXT, model.trainedContext);
  const shorten = (min: number, enough: number): void => {
    while (requested.context === null && contextSize > min && slotsAt(contextSize) < enough) {
      contextSize = Math.max(min, Math.floor(contextSize / 2));
    }
  };
  shorten(SHORTEST_CONTEXT, requested.slots ?? ENOUGH_SLOTS);
  shorten(MIN_CONTEXT, 1);
  return { slots: requested.slots ?? Math.max(1, Math.min(MAX_SLOTS, slotsAt(contextSize))), contextSize };
}

/** Sizes that fit; otherwise the smallest, so the plan can report the missing memory. */
function imageSizes(model: ModelFacts, facts: ImageFacts, budget: number): readonly ImageSize[] {
  const fitting = sizesWithin(facts, budget - OVERHEAD - IMAGE_WEIGHTS[facts.engine] * model.fileBytes);
  const smallest = facts.sizes.toSorted((a, b) => a.width * a.height - b.width * b.height).slice(0, 1);
  return fitting.length > 0 ? fitting : smallest;
}

/** Bytes of a model loaded with this capacity. */
export function memoryNeed(model: ModelFacts, { slots, contextSize, sizes }: Capacity): number {
  const { image } = model;
  if (image !== null) {
    return (
      OVERHEAD +
      IMAGE_WEIGHTS[image.engine] * model.fileBytes +
      Math.max(...(sizes ?? image.sizes).map((size) => imageJobBytes(image, size)))
    );
  }
  const streams = model.embedding === null ? slots : 1;
  return OVERHEAD + model.fileBytes + model.cacheBytesPerToken * contextSize * streams;
}

/** A model of the owner's list. */
export interface Wanted {
  readonly facts: ModelFacts;
  /** Never unloaded. */
  readonly always: boolean;
}

export interface Planned<W extends Wanted> {
  readonly wanted: W;
  readonly capacity: Capacity;
  /** Bytes. */
  readonly need: number;
  /** Maximum bytes available; less than `need` if the model cannot be loaded. */
  readonly max: number;
}

/**
 * Plans models that share a machine. Models that are always loaded share memory in proportion to their sizes. The others share the
 * rest if they fit together with room for slots; otherwise each is planned alone, and they take turns.
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
    // A model that cannot be loaded takes nothing from the others.
    if (one.need <= left) left -= one.need;
  }
  const others = models.filter((model) => !model.always);
  const together = ROOM_FOR_STREAMS * bytesOf(others) + others.length * OVERHEAD <= left;
  for (const model of others) planned.set(model, plan(model, together ? share(others, model, left) : left, left));
  return models.flatMap((model) => planned.get(model) ?? []);
}

/** Models stay loaded together if memory holds this multiple of their total size. */
const ROOM_FOR_STREAMS = 1.3;

function bytesOf(models: readonly Wanted[]): number {
  return models.reduce((sum, { facts }) => sum + facts.fileBytes, 0);
}

/** Share of memory bandwidth that llama.cpp reaches on Apple silicon with one stream, by published measurements. */
const REACHED = 0.7;

/**
 * Estimated tokens per second of one stream; null for an unknown bandwidth (GB/s). Each token reads every active weight once, so
 * bandwidth is the limit. For display only.
 */
export function estimatedTokensPerSecond({ activeBytes }: Pick<ModelFacts, 'activeBytes'>, bandwidthGbs: number): number | null {
  if (bandwidthGbs <= 0 || activeBytes <= 0) return null;
  return (REACHED * bandwidthGbs * 1e9) / activeBytes;
}
