/**
 * Baseline process of the engine bench: generates with node-llama-cpp alone, without this project's code. Over IPC, answers each
 * `{streams, seconds, generatedTokens, question}` with `{tokensPerSecond}`; `{}` in the question is replaced by a new number.
 */
import { getLlama, LlamaLogLevel } from 'node-llama-cpp';

const PROMPT_TOKENS = 256;
const cpu = process.platform !== 'darwin';

const llama = await getLlama({
  gpu: cpu ? false : 'auto',
  build: 'never',
  logLevel: LlamaLogLevel.error,
  ...(cpu ? { maxThreads: 1 } : {}),
});
const model = await llama.loadModel({ modelPath: process.argv[2] });

process.on('message', async (order) => process.send({ tokensPerSecond: await measure(order) }));
process.on('disconnect', () => process.exit());
process.send({ ready: true });

async function measure({ streams, seconds, generatedTokens, question }) {
  const contextSize = generatedTokens + PROMPT_TOKENS;
  const context = await model.createContext({ contextSize, sequences: streams, ...(cpu ? { threads: 1 } : {}) });
  const begin = performance.now();
  const end = begin + seconds * 1000;
  let tokens = 0;
  const run = async (_, stream) => {
    const sequence = context.getSequence();
    for (let round = 0; performance.now() < end; round++) {
      const generated = await generate(sequence, question.replace('{}', String(round * streams + stream)), generatedTokens);
      tokens += generated;
    }
  };
  await Promise.all(Array.from({ length: streams }, run));
  const tokensPerSecond = (tokens / (performance.now() - begin)) * 1000;
  await context.dispose();
  return tokensPerSecond;
}

async function generate(sequence, question, limit) {
  await sequence.clearHistory();
  const prompt = model.tokenize(`<|im_start|>user\n${question}<|im_end|>\n<|im_start|>assistant\n`, true);
  let generated = 0;
  for await (const token of sequence.evaluate(prompt, { temperature: 1, topK: 0, topP: 1, minP: 0 })) {
    model.detokenize([token], true);
    if (++generated === limit) break;
  }
  return generated;
}
