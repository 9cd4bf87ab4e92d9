import type { Token } from 'node-llama-cpp';
import { type NativeContext, nativeTokens } from '../native.js';

/**
 * Rows of the test batches. GPU backends have different kernels for one row, a few rows, tiles with a remainder, and whole tiles. Tiles
 * larger than 32 rows are used from 65 rows on.
 */
const BATCH_ROWS = [1, 4, 33, 96];

/**
 * Decodes test batches, so that a GPU reads the weights and compiles its kernels before the first request.
 *
 * The context must be empty and is left empty. Throws an Error whose message is meant for the Mac's owner.
 */
export async function warmUp(context: NativeContext, vocabularySize: number): Promise<void> {
  for (const rows of BATCH_ROWS) {
    const tokens = Array.from({ length: rows }, (_, index) => (index % vocabularySize) as Token);
    context.initBatch(rows);
    context.addToBatch(0, 0, nativeTokens(tokens), Uint32Array.of(rows - 1));
    try {
      await context.decodeBatch();
    } catch (error) {
      throw gpuFailure(error);
    }
    context.disposeSequence(0);
  }
}

export function gpuFailure(cause: unknown): Error {
  return new Error('the GPU cannot run the model; set a smaller context or fewer slots in config.toml', { cause });
}
