/** How many streams of what length a machine can hold beside a model. Pure: the numbers come in, the plan goes out. */
import type { ModelFacts } from './model-facts.js';

export interface Capacity {
  readonly slots: number;
  /** Tokens of one stream, prompt and answer together. */
  readonly contextSize: number;
}

export interface CapacityWishes {
  readonly slots: number | null;
  readonly context: number | null;
  /** Bytes. */
  readonly totalMemory: number;
}

const DEFAULT_CONTEXT = 8192;
const DEFAULT_SLOTS = 8;
/** Part of the memory that models and caches may take; the rest is the owner's. */
const USABLE_PART = 0.6;

/** What the owner wished for goes first; what was left open is fitted to memory, length before number. */
export function planCapacity(model: ModelFacts, wishes: CapacityWishes): Capacity {
  const contextSize = Math.min(wishes.context ?? DEFAULT_CONTEXT, model.trainedContext);
  if (wishes.slots !== null) return { slots: wishes.slots, contextSize };
  const free = USABLE_PART * wishes.totalMemory - model.fileBytes;
  // One stream more than there are slots: requests with a seed have a lane of their own.
  const streams = Math.floor(free / Math.max(1, model.cacheBytesPerToken * contextSize)) - 1;
  return { slots: Math.max(1, Math.min(DEFAULT_SLOTS, streams)), contextSize };
}
