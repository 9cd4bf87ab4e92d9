/** `loadWeights` loads the weights of a text or embedding model with node-llama-cpp. */
import { getLlama, LlamaLogLevel, type LlamaModel, LlamaVocabularyType } from 'node-llama-cpp';
import type { EngineSettings } from '../messages.js';

/** Returns the model and options for each of its contexts. Throws an Error with a message for the owner. */
export async function loadWeights({
  gpu,
  modelPath,
}: EngineSettings): Promise<{ model: LlamaModel; contextOptions: { threads?: number } }> {
  const onProcessor = gpu === 'none';
  const messages: string[] = [];
  let isLoading = true;
  const llama = await getLlama({
    gpu: onProcessor ? false : 'auto',
    build: 'never',
    progressLogs: false,
    logLevel: LlamaLogLevel.error,
    logger: (_level, text) => {
      process.stderr.write(`${text.trimEnd()}\n`);
      if (isLoading) messages.push(text);
    },
    // Without a GPU a single thread, because two compute threads that share a core are ten times slower.
    ...(onProcessor ? { maxThreads: 1 } : {}),
  });
  try {
    return { model: await llama.loadModel({ modelPath }), contextOptions: onProcessor ? { threads: 1 } : {} };
  } catch (error) {
    const reason = reasonIn(messages.join('\n'));
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

/** Reason from llama.cpp's log, such as "unknown model architecture: 'x'". The exception itself contains no reason. */
function reasonIn(log: string): string | null {
  return /error loading model(?: \w+)?: (.{1,300})/.exec(log)?.[1]?.trim() ?? null;
}
