/** The settings of `config.toml` that decide how models use the memory. */
import type { Config } from './config.js';

export interface ModelMemorySettings {
  /** Concurrent sequences per model. Null: planned from the memory. */
  readonly slots: number | null;
  /** Tokens of one sequence. Null: planned from the memory. */
  readonly context: number | null;
  /** Element type of the KV cache of text models, where the model supports it. */
  readonly kvCacheType: Config['models']['kv_cache_type'];
  /** Bytes reserved for the owner. Null: two fifths of the memory. */
  readonly reserve: number | null;
}

export function modelMemorySettings({ models }: Config): ModelMemorySettings {
  const { slots = null, context = null, kv_cache_type: kvCacheType, reserve_gb: reserve } = models;
  return { slots, context, kvCacheType, reserve: reserve === undefined ? null : reserve * 1e9 };
}
