/** `loadWeights` loads the weights of a text or embedding model with node-llama-cpp. */
import { getLlama, LlamaLogLevel, type LlamaModel, LlamaVocabularyType } from 'node-llama-cpp';
import type { EngineSettings } from '../messages.js';

/** Returns the model, and options to create its context with. Throws an Error whose message is meant for the Mac's owner. */
export async function loadWeights({
  gpu,
  modelPath,
}: EngineSettings): Promise<{ model: LlamaModel; contextOptions: { threads?: number } }> {
  const usesCpuOnly = gpu === 'none';
  const loadErrors: string[] = [];
  let isLoading = true;
  const llama = await getLlama({
    gpu: usesCpuOnly ? false : 'auto',
    build: 'never',
    progressLogs: false,
    logLevel: LlamaLogLevel.error,
    logger: (_level, text) => {
      process.stderr.write(`${text.trimEnd()}\n`);
      if (isLoading) loadErrors.push(text);
    },
    // Two compute threads that share a core are ten times slower than one.
    ...(usesCpuOnly ? { maxThreads: 1 } : {}),
  });
  try {
    return { model: await llama.loadModel({ modelPath }), contextOptions: usesCpuOnly ? { threads: 1 } : {} };
  } catch (error) {
    const reason = reasonIn(loadErrors.join('\n'));
    throw reason === null ? error : new Error(`llama.cpp does not load the model: ${reason}`, { cause: error });
  } finally {
    isLoading = false;
  }
}

export function isBytePair({ vocabularyType }: LlamaModel): boolean {
  return vocabularyType === LlamaVocabularyType.bpe;
}

/** Name, build and device of the engine. */
export function buildOf({ llama }: LlamaModel): string {
  const { release } = llama.llamaCppRelease;
  return `llama.cpp ${release} ${llama.gpu === false ? 'cpu' : llama.gpu}`;
}

/** Reason from llama.cpp's log, such as "unknown model architecture: 'x'", or null. node-llama-cpp's exception contains no reason. */
function reasonIn(log: string): string | null {
  return /error loading model(?: \w+)?: (.{1,300})/.exec(log)?.[1]?.trim() ?? null;
}
