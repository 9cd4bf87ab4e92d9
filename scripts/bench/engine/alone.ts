/**
 * The baseline of the engine bench: plain node-llama-cpp sequences in a process of their own, with nothing around them.
 * Reads `{"streams": n, "seconds": s}` lines from its parent over IPC and answers each with `{"tokensPerSecond": r}`.
 */
import { getLlama, type LlamaContextSequence, LlamaLogLevel, type LlamaModel } from 'node-llama-cpp';
import { GENERATED_TOKENS, prompt } from './prompts.js';

const SPARE_TOKENS = 256;

const llama = await getLlama({
  gpu: process.platform === 'darwin' ? 'auto' : false,
  build: 'never',
  logLevel: LlamaLogLevel.error,
  ...(process.platform === 'darwin' ? {} : { maxThreads: 1 }),
});
const model = await llama.loadModel({ modelPath: process.argv[2] as string });

process.on('message', (order: { streams: number; seconds: number }) => {
  void measure(model, order.streams, order.seconds).then((tokensPerSecond) => process.send?.({ tokensPerSecond }));
});
process.on('disconnect', () => process.exit());
process.send?.({ ready: true });

async function measure(model: LlamaModel, streams: number, seconds: number): Promise<number> {
  const context = await model.createContext({
    contextSize: GENERATED_TOKENS + SPARE_TOKENS,
    sequences: streams,
    ...(process.platform === 'darwin' ? {} : { threads: 1 }),
  });
  const begin = performance.now();
  const end = begin + seconds * 1000;
  let tokens = 0;
  await Promise.all(
    Array.from({ length: streams }, async (_, stream) => {
      const sequence = context.getSequence();
      for (let round = 0; performance.now() < end; round++) tokens += await generate(sequence, model, round * streams + stream);
    }),
  );
  const tokensPerSecond = (tokens / (performance.now() - begin)) * 1000;
  await context.dispose();
  return tokensPerSecond;
}

async function generate(sequence: LlamaContextSequence, model: LlamaModel, index: number): Promise<number> {
  await sequence.clearHistory();
  const text = `<|im_start|>user\n${prompt(index)}<|im_end|>\n<|im_start|>assistant\n`;
  let generated = 0;
  for await (const token of sequence.evaluate(model.tokenize(text, true), { temperature: 1, topK: 0, topP: 1, minP: 0 })) {
    model.detokenize([token], true);
    if (++generated === GENERATED_TOKENS) break;
  }
  return generated;
}
