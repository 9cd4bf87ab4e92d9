/** `Embedder` with a scripted embedding context. */
import type { LlamaEmbeddingContext, LlamaModel } from 'node-llama-cpp';
import { expect, it } from 'vitest';
import type { FromEngine } from '../../src/engine/messages.js';
import { Embedder } from '../../src/engine/process/embedder.js';

/** An embedder whose inputs are token ids below 10, and the outcomes of its jobs. */
function embedder() {
  const ends: string[] = [];
  const model = { fileInfo: { metadata: { tokenizer: { ggml: { model: 'bert', tokens: Array(10).fill('') } } } } };
  const context = { calculateInputLength: (tokens: readonly number[]) => tokens.length, getEmbeddingFor: async () => ({ vector: [1] }) };
  const send = (message: FromEngine): void => void (message.type === 'embedding_ended' && ends.push(message.ended.kind));
  const facts = { build: 'test', slots: 1, contextSize: 8 };
  // The embedder uses only these members of the library's objects.
  const embedder = new Embedder(model as unknown as LlamaModel, context as unknown as LlamaEmbeddingContext, facts, send);
  return { embedder, ends };
}

it('cancels a running job', async () => {
  const { embedder: running, ends } = embedder();
  const done = running.run(1, { inputs: [[1], [2]], dimensions: null });
  running.cancel(1);
  await done;
  expect(ends).toEqual(['cancelled']);
});

it('forgets a cancellation that arrives after the end of the job', async () => {
  const { embedder: idle, ends } = embedder();
  await idle.run(1, { inputs: [[1]], dimensions: null });
  idle.cancel(1);
  await idle.run(1, { inputs: [[1]], dimensions: null });
  expect(ends).toEqual(['finished', 'finished']);
});
