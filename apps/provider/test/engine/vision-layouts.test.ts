/** A native library with other structs than the pinned version is refused when a projector is loaded. */
import { expect, test } from 'vitest';
import type { LlamaLibrary } from '../../src/engine/vision/llama-library.js';
import { Projector } from '../../src/engine/vision/projector.js';
import type { VisionVocabulary } from '../../src/engine/vision/vision-vocabulary.js';

type Callback = (error: null, result: bigint) => void;

test('a library that reads the texts of requests differently is refused', async () => {
  const library = {
    mtmd_context_params_default: () => ({}),
    mtmd_init_from_file: { async: (...args: unknown[]) => (args.at(-1) as Callback)(null, 1n) },
    mtmd_support_vision: () => true,
    mtmd_input_chunks_init: () => 2n,
    mtmd_tokenize: () => 0,
    mtmd_input_chunks_size: () => 0,
    mtmd_input_chunks_free: () => {},
  } as unknown as LlamaLibrary;
  const vocabulary = { tokens: { eosString: '</s>' }, tokenize: () => [1] } as unknown as VisionVocabulary;
  const settings = { path: 'mmproj.gguf', model: 3n, vocabulary, useGpu: false, threads: 1, maxImageTokens: null };
  await expect(Projector.load(library, settings)).rejects.toThrow('another version than this program expects');
});
