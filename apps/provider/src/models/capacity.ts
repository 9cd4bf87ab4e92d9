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

/** Longest context that is offered unasked. Coding agents send prompts of twenty thousand tokens and more. */
const LONGEST_CONTEXT = 131_072;
/** A context is not shortened below this to gain streams. */
const SHORTEST_CONTEXT = 8192;
const MOST_SLOTS = 8;
/** Streams for which a long context is given up. */
const ENOUGH_SLOTS = 4;
/** Part of the memory that models and caches may take; the rest is the owner's. */
const USABLE_PART = 0.6;

/** What the owner wished for goes first; what was left open is fitted to memory: the longest context that leaves a few streams. */
export function planCapacity(model: ModelFacts, wishes: CapacityWishes): Capacity {
  const free = USABLE_PART * wishes.totalMemory - model.fileBytes;
  // One stream more than there are slots: requests with a seed have a lane of their own.
  const slotsAt = (contextSize: number): number => Math.floor(free / Math.max(1, model.cacheBytesPerToken * contextSize)) - 1;
  const enough = wishes.slots ?? ENOUGH_SLOTS;
  let contextSize = Math.min(wishes.context ?? LONGEST_CONTEXT, model.trainedContext);
  while (wishes.context === null && contextSize > SHORTEST_CONTEXT && slotsAt(contextSize) < enough) {
    contextSize = Math.max(SHORTEST_CONTEXT, Math.floor(contextSize / 2));
  }
  return { slots: wishes.slots ?? Math.max(1, Math.min(MOST_SLOTS, slotsAt(contextSize))), contextSize };
}
