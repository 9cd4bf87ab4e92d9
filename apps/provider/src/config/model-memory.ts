/** Memory settings of models, from the settings file, for capacity planning. Pure. */
import type { Config } from './config.js';

export interface ModelMemorySettings {
  /** Concurrent sequences per model. If null, as many as fit. */
  readonly slots: number | null;
  /** Tokens of one sequence. If null, as many as fit. */
  readonly context: number | null;
  /** Bytes reserved for the owner. If null, two fifths of the memory. */
  readonly reserve: number | null;
}

export function modelMemorySettings({ models: { slots, context, reserve_gb: reserve } }: Config): ModelMemorySettings {
  return { slots: slots ?? null, context: context ?? null, reserve: reserve === undefined ? null : reserve * 1e9 };
}
