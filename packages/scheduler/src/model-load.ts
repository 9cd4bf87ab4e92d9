/**
 * Whether a machine has a model in memory, from what it tells and from what it was given: a job for a model that is not in memory
 * makes it load from then on, before it says so itself. Pure; time comes in.
 */
import type { ModelOffer } from '@inference/protocol';

export type ModelLoad =
  /** In memory since then, in milliseconds; 0: since it was first heard of. */
  | { readonly kind: 'ready'; readonly since: number }
  | { readonly kind: 'loading'; readonly readyAt: number; readonly loadMs: number }
  /** Not in memory: it is loaded when a job for it comes. */
  | { readonly kind: 'cold'; readonly loadMs: number };

export const READY_LOAD: ModelLoad = { kind: 'ready', since: 0 };

/** Taken for a machine that does not tell, in milliseconds. */
const DEFAULT_LOAD_MS = 15_000;

/** What a fresh list of models says of one, after `before` (undefined: it was not in the last list). */
export function loadFromOffer(
  before: ModelLoad | undefined,
  { state = 'ready', load_ms: loadMs = DEFAULT_LOAD_MS }: ModelOffer,
  now: number,
): ModelLoad {
  switch (state) {
    case 'ready':
      if (before?.kind === 'ready') return before;
      return { kind: 'ready', since: before === undefined ? 0 : now };
    case 'loading':
      // The same word again is no new beginning.
      if (before?.kind === 'loading' && before.loadMs === loadMs) return before;
      return { kind: 'loading', readyAt: now + loadMs, loadMs };
    case 'on_demand':
      // It may not have seen the job yet that makes it load.
      if (before?.kind === 'loading' && now < before.readyAt) return before;
      return { kind: 'cold', loadMs };
  }
}

/** After the machine was given a job for the model. */
export function loadAfterPlacement(load: ModelLoad, now: number): ModelLoad {
  return load.kind === 'cold' ? { kind: 'loading', readyAt: now + load.loadMs, loadMs: load.loadMs } : load;
}

/** How long it would take until the model is in memory, in milliseconds. */
export function remainingLoadMs(load: ModelLoad, now: number): number {
  switch (load.kind) {
    case 'ready':
      return 0;
    case 'loading':
      return Math.max(0, load.readyAt - now);
    case 'cold':
      return load.loadMs;
  }
}

/** Whether an answer that began at `startedAt` tells how fast the machine is, and not how fast it loads. */
export function wasReady(load: ModelLoad, startedAt: number): boolean {
  return load.kind === 'ready' && load.since <= startedAt;
}
