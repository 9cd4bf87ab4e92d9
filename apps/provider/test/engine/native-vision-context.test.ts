/** Short batches are decoded on the JavaScript thread, so text has to leave before them. */
import { expect, test } from 'vitest';
import { Outbox } from '../../src/engine/process/outbox.js';
import type { LlamaLibrary } from '../../src/engine/vision/llama-library.js';
import { NativeVisionContext } from '../../src/engine/vision/native-vision-context.js';

test('the text of a token leaves before the next token is decoded', async () => {
  const order: string[] = [];
  const library = {
    llama_get_memory: () => 1n,
    llama_decode: () => {
      order.push('decode');
      return 0;
    },
  } as unknown as LlamaLibrary;
  const context = new NativeVisionContext({ library, context: 2n, vocabularySize: 4, sequences: 1, batchTokens: 4 });
  const outbox = new Outbox(() => order.push('text'));
  context.initBatch();
  context.addToBatch(0, 0, Uint32Array.of(1), Uint32Array.of(0));
  const decoded = context.decodeBatch();
  outbox.piece(1, 1, 'a');
  await decoded;
  expect(order).toEqual(['text', 'decode']);
});
