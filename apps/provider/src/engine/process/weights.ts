/** Brings the weights of a model file into memory, whatever the model is for. */
import { getLlama, LlamaLogLevel, type LlamaModel } from 'node-llama-cpp';
import type { EngineSettings } from '../messages.js';

/** The model, and what every context of it must be made with. Throws an Error whose message is for the owner. */
export async function loadWeights({
  gpu,
  modelPath,
}: EngineSettings): Promise<{ model: LlamaModel; contextOptions: { threads?: number } }> {
  const onProcessor = gpu === 'none';
  const llama = await getLlama({
    gpu: onProcessor ? false : 'auto',
    build: 'never',
    progressLogs: false,
    logLevel: LlamaLogLevel.error,
    // Two that share a core are ten times slower.
    ...(onProcessor ? { maxThreads: 1 } : {}),
  });
  return { model: await llama.loadModel({ modelPath }), contextOptions: onProcessor ? { threads: 1 } : {} };
}
