/** Brings the weights of a model file into memory, whatever the model is for. */
import { getLlama, LlamaLogLevel, type LlamaModel } from 'node-llama-cpp';
import type { EngineSettings } from '../messages.js';

/** The model, and what every context of it must be made with. Throws an Error whose message is for the owner. */
export async function loadWeights({
  gpu,
  modelPath,
}: EngineSettings): Promise<{ model: LlamaModel; contextOptions: { threads?: number } }> {
  const onProcessor = gpu === 'none';
  const said: string[] = [];
  let isLoading = true;
  const llama = await getLlama({
    gpu: onProcessor ? false : 'auto',
    build: 'never',
    progressLogs: false,
    logLevel: LlamaLogLevel.error,
    logger: (_level, text) => {
      process.stderr.write(`${text.trimEnd()}\n`);
      if (isLoading) said.push(text);
    },
    // Two that share a core are ten times slower.
    ...(onProcessor ? { maxThreads: 1 } : {}),
  });
  try {
    return { model: await llama.loadModel({ modelPath }), contextOptions: onProcessor ? { threads: 1 } : {} };
  } catch (error) {
    const reason = reasonIn(said.join('\n'));
    throw reason === null ? error : new Error(`llama.cpp does not load it: ${reason}`, { cause: error });
  } finally {
    isLoading = false;
  }
}

/** Name and build of the engine, and what it computes on. */
export function buildOf({ llama }: LlamaModel): string {
  const { release } = llama.llamaCppRelease;
  return `llama.cpp ${release} ${llama.gpu === false ? 'cpu' : llama.gpu}`;
}

/** What llama.cpp wrote of the cause, such as "unknown model architecture: 'x'"; its exception says only that it failed. */
function reasonIn(log: string): string | null {
  return /error loading model(?: \w+)?: (.{1,300})/.exec(log)?.[1]?.trim() ?? null;
}
