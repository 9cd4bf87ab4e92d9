/** Memory settings of models, converted from the settings file to bytes and counts for capacity planning. Pure. */
import type { Config } from './config.js';

/** Null: as much as fits. */
export interface ModelMemorySettings {
  readonly slots: number | null;
  readonly context: number | null;
  /** Bytes reserved for the owner. */
  readonly reserve: number | null;
}

export function modelMemorySettings({ models: { slots, context, reserve_gb: reserve } }: Config): ModelMemorySettings {
  return { slots: slots ?? null, context: context ?? null, reserve: reserve === undefined ? null : reserve * 1e9 };
}
