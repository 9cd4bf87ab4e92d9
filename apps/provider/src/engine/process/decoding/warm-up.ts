import type { Token } from 'node-llama-cpp';
import { type NativeContext, nativeTokens } from '../native.js';

/**
 * Rows of the test batches. GPU backends have kernels of their own for one row, a few, a number that no tile divides, and whole tiles.
 * Larger tiles than 32 rows begin at 65.
 */
const BATCH_ROWS = [1, 4, 33, 96];

/**
 * Decodes test batches in an empty context, and leaves the context empty.
 *
 * A GPU reads the weights and compiles kernels on first use; without a warm-up, the first requests would wait for most of that.
 * Throws an Error with a message for the owner.
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

/** Error for the owner. */
export function gpuFailure(cause: unknown): Error {
  return new Error('the GPU cannot run the model; set a smaller context or fewer slots in config.toml', { cause });
}
