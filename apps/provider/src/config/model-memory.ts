/** What the settings say of the memory that models may take, in the units of the plans that are made with it. Pure. */
import type { Config } from './config.js';

/** Null: what fits. */
export interface ModelMemorySettings {
  readonly slots: number | null;
  readonly context: number | null;
  /** Bytes that are left to the owner. */
  readonly reserve: number | null;
}

export function modelMemorySettings({ models: { slots, context, reserve_gb: reserve } }: Config): ModelMemorySettings {
  return { slots: slots ?? null, context: context ?? null, reserve: reserve === undefined ? null : reserve * 1e9 };
}
