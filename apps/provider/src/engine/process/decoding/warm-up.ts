import type { Token } from 'node-llama-cpp';
import { type NativeContext, nativeTokens } from '../native.js';

/** Rows of the test batches. GPU backends have kernels of their own for one row, for a few, and for many. */
const BATCH_ROWS = [1, 4, 32];

/**
 * Decodes test batches in an empty context, and leaves the context empty.
 *
 * A GPU reads the weights and compiles its kernels on first use; without a warm-up, the first requests would wait for that.
 */
export async function warmUp(context: NativeContext, vocabularySize: number): Promise<void> {
  for (const rows of BATCH_ROWS) {
    const tokens = Array.from({ length: rows }, (_, index) => (index % vocabularySize) as Token);
    context.initBatch(rows);
    context.addToBatch(0, 0, nativeTokens(tokens), Uint32Array.of(rows - 1));
    await context.decodeBatch();
    context.disposeSequence(0);
  }
}
