/** Plans slots (concurrent sequences), context size and memory of models before they are loaded, within a memory ceiling. */
import { type ImageFacts, type ImageSize, imageJobBytes, sizesWithin } from './image/image-facts.js';
import { cacheBytesPerToken, type KvCacheType, kvCacheTypeOf } from './kv-cache-type.js';
import type { ModelFacts } from './model-facts.js';

export interface Capacity {
  readonly slots: number;
  /** Tokens of one sequence, prompt and answer together. */
  readonly contextSize: number;
  /** Element type of a text model's KV cache. Default: `f16`. */
  readonly kvCacheType?: KvCacheType;
  /** Image models only: image sizes that fit the memory, the native size first if it fits. */
  readonly sizes?: readonly ImageSize[];
}

interface CapacityRequest {
  /** The owner's setting. If null, the plan chooses. */
  readonly slots: number | null;
  /** Tokens of one sequence, by the owner's setting. If null, the plan chooses. */
  readonly context: number | null;
  /** For models whose KV cache can be quantized. Default: `f16`. */
  readonly kvCacheType?: KvCacheType;
  /** Maximum bytes of the model with its caches. */
  readonly budget: number;
}

/** Maximum context size unless the owner sets one. Coding agents send prompts of 20,000 tokens and more. */
const MAX_DEFAULT_CONTEXT = 131_072;
/** The context is not shortened below this size to gain slots. */
const MIN_CONTEXT_FOR_SLOTS = 8192;
/** The context is not shortened below this size to fit at all. */
const MIN_CONTEXT = 2048;
const MAX_SLOTS = 8;
/** A context is shortened, down to `MIN_CONTEXT_FOR_SLOTS`, until this many slots fit. */
const SLOTS_WITH_LONG_CONTEXT = 4;
/** Share of the memory for models and caches if the owner set no reserve. */
const DEFAULT_MODEL_SHARE = 0.6;
/** Process overhead besides weights and cache, in bytes: compute buffers and Node. */
const PROCESS_OVERHEAD_BYTES = 200e6;
/** Embedding models read a text in one batch, whose buffers grow with the context. */
const MAX_EMBEDDING_CONTEXT = 8192;
/** Memory per byte of weights. ONNX Runtime stores some weights a second time, in CPU layout. */
const IMAGE_BYTES_PER_WEIGHT_BYTE = { onnx: 1.5, 'stable-diffusion.cpp': 1 } as const;
/** Image jobs run in sequence. */
const IMAGE_SLOTS = 1;
/** Maximum concurrent embedding requests; the engine computes them in sequence. */
const EMBEDDING_SLOTS = 8;

/**
 * Maximum bytes of all models; unlimited if the total memory is unknown.
 *
 * @param reserve Bytes left to the owner. If null, two fifths of the memory.
 */
export function memoryCeiling(totalMemory: number, reserve: number | null): number {
  if (totalMemory <= 0) return Number.POSITIVE_INFINITY;
  return reserve === null ? DEFAULT_MODEL_SHARE * totalMemory : Math.max(0, totalMemory - reserve);
}

/** Plans one model: the owner's settings, else a context as long as a few slots leave memory for. */
export function planCapacity(model: ModelFacts, requested: CapacityRequest): Capacity {
  if (model.embedding !== null) {
    return {
      slots: requested.slots ?? EMBEDDING_SLOTS,
      contextSize: Math.min(requested.context ?? MAX_EMBEDDING_CONTEXT, model.trainedContext),
    };
  }
  if (model.image !== null)
    return { slots: IMAGE_SLOTS, contextSize: model.trainedContext, sizes: imageSizes(model, model.image, requested.budget) };
  const free = requested.budget - baseBytes(model);
  const kvCacheType = kvCacheTypeOf(model, requested.kvCacheType ?? 'f16') ?? 'f16';
  const tokenBytes = cacheBytesPerToken(model, kvCacheType);
  const slotsAt = (contextSize: number): number => Math.floor(free / Math.max(1, tokenBytes * contextSize));
  let contextSize = Math.min(requested.context ?? MAX_DEFAULT_CONTEXT, model.trainedContext);
  const shorten = (min: number, enough: number): void => {
    while (requested.context === null && contextSize > min && slotsAt(contextSize) < enough) {
      contextSize = Math.max(min, Math.floor(contextSize / 2));
    }
  };
  shorten(MIN_CONTEXT_FOR_SLOTS, requested.slots ?? SLOTS_WITH_LONG_CONTEXT);
  shorten(MIN_CONTEXT, 1);
  const slots = requested.slots ?? Math.max(1, Math.min(MAX_SLOTS, slotsAt(contextSize)));
  return { slots, contextSize, ...(kvCacheType === 'f16' ? {} : { kvCacheType }) };
}

/** Sizes that fit; if none does, the smallest, so that `memoryNeed` tells the missing memory. */
function imageSizes(model: ModelFacts, facts: ImageFacts, budget: number): readonly ImageSize[] {
  const fitting = sizesWithin(facts, budget - PROCESS_OVERHEAD_BYTES - IMAGE_BYTES_PER_WEIGHT_BYTE[facts.engine] * model.fileBytes);
  const smallest = facts.sizes.toSorted((a, b) => a.width * a.height - b.width * b.height).slice(0, 1);
  return fitting.length > 0 ? fitting : smallest;
}

/** Bytes of a model loaded with this capacity. */
export function memoryNeed(model: ModelFacts, { slots, contextSize, kvCacheType = 'f16', sizes }: Capacity): number {
  const { image } = model;
  if (image !== null) {
    return (
      PROCESS_OVERHEAD_BYTES +
      IMAGE_BYTES_PER_WEIGHT_BYTE[image.engine] * model.fileBytes +
      Math.max(...(sizes ?? image.sizes).map((size) => imageJobBytes(image, size)))
    );
  }
  const streams = model.embedding === null ? slots : 1;
  return baseBytes(model) + cacheBytesPerToken(model, kvCacheType) * contextSize * streams;
}

/** Bytes of a text or embedding model without its KV cache. One image is encoded at a time. */
function baseBytes({ fileBytes, vision }: ModelFacts): number {
  return PROCESS_OVERHEAD_BYTES + fileBytes + (vision?.imageBytes ?? 0);
}

/** Estimated minimum memory of a text model of this file size, in bytes, with room for a few short conversations. */
export function minMemoryNeed(fileBytes: number): number {
  return MIN_BYTES_PER_WEIGHT_BYTE * fileBytes + PROCESS_OVERHEAD_BYTES;
}

export interface ListedModel {
  readonly facts: ModelFacts;
  /** Whether the model's keep-alive is `always`. */
  readonly isAlwaysLoaded: boolean;
}

export interface PlannedModel<Model extends ListedModel> {
  readonly model: Model;
  readonly capacity: Capacity;
  readonly need: number;
  /** Bytes available for the model; less than `need` if it cannot be loaded. */
  readonly max: number;
}

/**
 * Plans models that share a machine. Always-loaded models share the memory in proportion to their sizes.
 *
 * The other models share the remaining memory if all fit together. Otherwise each is planned for all of it, and they are loaded in turns.
 */
export function planModels<Model extends ListedModel>(
  models: readonly Model[],
  { ceiling, ...requested }: Omit<CapacityRequest, 'budget'> & { readonly ceiling: number },
): PlannedModel<Model>[] {
  const plan = (model: Model, budget: number, max: number): PlannedModel<Model> => {
    const capacity = planCapacity(model.facts, { ...requested, budget });
    return { model, capacity, need: memoryNeed(model.facts, capacity), max };
  };
  const always = models.filter((model) => model.isAlwaysLoaded);
  const shareOf = (model: Model, models: readonly Model[], memory: number): number =>
    memory === Number.POSITIVE_INFINITY ? memory : (memory * model.facts.fileBytes) / bytesOf(models);
  const plannedByModel = new Map<Model, PlannedModel<Model>>();
  let left = ceiling;
  for (const model of always) {
    const one = plan(model, shareOf(model, always, ceiling), left);
    plannedByModel.set(model, one);
    // A model that cannot be loaded needs no memory.
    if (one.need <= left) left -= one.need;
  }
  const others = models.filter((model) => !model.isAlwaysLoaded);
  const doOthersFit = others.reduce((sum, { facts }) => sum + minMemoryNeed(facts.fileBytes) + (facts.vision?.imageBytes ?? 0), 0) <= left;
  for (const model of others) plannedByModel.set(model, plan(model, doOthersFit ? shareOf(model, others, left) : left, left));
  return models.flatMap((model) => plannedByModel.get(model) ?? []);
}

/** Memory of a text model with little context, as a multiple of its file size. */
const MIN_BYTES_PER_WEIGHT_BYTE = 1.3;

function bytesOf(models: readonly ListedModel[]): number {
  return models.reduce((sum, { facts }) => sum + facts.fileBytes, 0);
}

/** Share of the memory bandwidth that llama.cpp uses on Apple silicon with one sequence, by published measurements. */
const BANDWIDTH_EFFICIENCY = 0.7;

/** Estimated tokens per second of one sequence, for display: each token reads every active weight once. Null if a factor is unknown. */
export function estimatedTokensPerSecond({ activeBytes }: Pick<ModelFacts, 'activeBytes'>, bandwidthGbs: number): number | null {
  if (bandwidthGbs <= 0 || activeBytes <= 0) return null;
  return (BANDWIDTH_EFFICIENCY * bandwidthGbs * 1e9) / activeBytes;
}
