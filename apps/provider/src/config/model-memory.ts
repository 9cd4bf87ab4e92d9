/** Memory settings of models, from the settings file, for capacity planning. Pure. */
import type { Config } from './config.js';

export interface ModelMemorySettings {
  /** Concurrent sequences per model. If null, as many as fit. */
  readonly slots: number | null;
  /** Tokens of one sequence. If null, as many as fit. */
  readonly context: number | null;
  /** Element type of the KV cache of text models, where the model supports it. */
  readonly kvCacheType: Config['models']['kv_cache_type'];
  /** Bytes reserved for the owner. If null, two fifths of the memory. */
  readonly reserve: number | null;
}

export function modelMemorySettings({ models }: Config): ModelMemorySettings {
  const { slots = null, context = null, kv_cache_type: kvCacheType, reserve_gb: reserve } = models;
  return { slots, context, kvCacheType, reserve: reserve === undefined ? null : reserve * 1e9 };
}
