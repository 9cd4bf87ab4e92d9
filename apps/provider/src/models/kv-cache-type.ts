/** `KvCacheType`: element type of a text model's KV cache, by llama.cpp's names. `q8_0` takes about half the memory of `f16`. */
import type { ModelFacts } from './model-facts.js';

export type KvCacheType = 'f16' | 'q8_0';

/** Elements of a block of `q8_0` (`QK8_0` in ggml). The keys and values of a head must fill whole blocks. */
export const KV_BLOCK_ELEMENTS = 32;
/** A block of `q8_0` has a 16-bit scale and one byte per element. */
const Q8_0_BLOCK_BYTES = 34;
const F16_BLOCK_BYTES = 2 * KV_BLOCK_ELEMENTS;

type CacheFacts = Pick<ModelFacts, 'embedding' | 'image' | 'cacheBytesPerToken' | 'canQuantizeCache'>;

/** The type that a model's cache gets: `f16` if the cache cannot be quantized. Null for other than text models. */
export function kvCacheTypeOf({ embedding, image, canQuantizeCache }: CacheFacts, requested: KvCacheType): KvCacheType | null {
  if (embedding !== null || image !== null) return null;
  return canQuantizeCache ? requested : 'f16';
}

/** Whether a text model keeps `f16` although the owner requested another type. */
export function keepsF16(facts: CacheFacts, requested: KvCacheType): boolean {
  return requested !== 'f16' && kvCacheTypeOf(facts, requested) === 'f16';
}

/** Text for the owner if {@link keepsF16}. */
export function keptF16Text(id: string): string {
  return `the KV cache of ${id} stays f16, because llama.cpp cannot quantize it for this model`;
}

/** KV-cache bytes per token of one sequence. */
export function cacheBytesPerToken({ cacheBytesPerToken: bytes }: CacheFacts, type: KvCacheType): number {
  return type === 'q8_0' ? (bytes * Q8_0_BLOCK_BYTES) / F16_BLOCK_BYTES : bytes;
}
