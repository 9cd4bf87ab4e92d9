/** `ModelLoad`: whether a provider has a model in memory, from its reports (offers) and from jobs that make it load the model. */
import type { ModelOffer } from '@inference/protocol';

export type ModelLoad =
  /** In memory since `since`, in milliseconds; 0: since the first offer. */
  | { readonly kind: 'ready'; readonly since: number }
  | { readonly kind: 'loading'; readonly readyAt: number; readonly loadMs: number }
  /** Not in memory; the next job makes the provider load the model. */
  | { readonly kind: 'cold'; readonly loadMs: number };

export const READY_LOAD: ModelLoad = { kind: 'ready', since: 0 };

/** Assumed load time if the provider reports none, in milliseconds. */
const DEFAULT_LOAD_MS = 15_000;

/** Load state after a new offer. `before` is undefined if the provider did not offer the model before. */
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
      // A repeated report does not restart the load.
      if (before?.kind === 'loading' && before.loadMs === loadMs) return before;
      return { kind: 'loading', readyAt: now + loadMs, loadMs };
    case 'on_demand':
      // The provider may have sent this offer before the job that started the load arrived.
      if (before?.kind === 'loading' && now < before.readyAt) return before;
      return { kind: 'cold', loadMs };
  }
}

export function loadAfterPlacement(load: ModelLoad, now: number): ModelLoad {
  return load.kind === 'cold' ? { kind: 'loading', readyAt: now + load.loadMs, loadMs: load.loadMs } : load;
}

/** Time until the model is in memory, in milliseconds. */
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

/** Whether the model was in memory at `startedAt`, so that the answer's timing excludes the load. */
export function wasReady(load: ModelLoad, startedAt: number): boolean {
  return load.kind === 'ready' && load.since <= startedAt;
}
