/**
 * The baseline of the engine bench: plain node-llama-cpp sequences in a process of their own, with nothing around them.
 * Reads `{"streams": n, "seconds": s}` lines from its parent over IPC and answers each with `{"tokensPerSecond": r}`.
 */
import { getLlama, type LlamaContext, LlamaLogLevel, type LlamaModel, type Token } from 'node-llama-cpp';
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
  const context = await model.createContext({ contextSize: GENERATED_TOKENS + SPARE_TOKENS, sequences: streams });
  const begin = performance.now();
  const end = begin + seconds * 1000;
  let tokens = 0;
  await Promise.all(
    Array.from({ length: streams }, async (_, stream) => {
      for (let round = 0; performance.now() < end; round++) tokens += await generate(context, model, round * streams + stream);
    }),
  );
  const tokensPerSecond = (tokens / (performance.now() - begin)) * 1000;
  await context.dispose();
  return tokensPerSecond;
}

async function generate(context: LlamaContext, model: LlamaModel, index: number): Promise<number> {
  const sequence = context.getSequence();
  try {
    const text = `<|im_start|>user\n${prompt(index)}<|im_end|>\n<|im_start|>assistant\n`;
    const generated: Token[] = [];
    for await (const token of sequence.evaluate(model.tokenize(text, true), { temperature: 1, topK: 0, topP: 1, minP: 0 })) {
      generated.push(token);
      model.detokenize([token], true);
      if (generated.length === GENERATED_TOKENS) break;
    }
    return generated.length;
  } finally {
    sequence.dispose();
  }
}
