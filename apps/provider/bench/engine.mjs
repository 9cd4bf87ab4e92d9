// Tokens per second through the engine process against node-llama-cpp alone in one process, at 1, 4 and 16 streams.
// usage: node bench/engine.mjs MODEL.gguf [tokens per stream] [rounds]      (after a build)
import { getLlama, LlamaLogLevel } from 'node-llama-cpp';
import { Engine } from '../dist/engine/engine.js';

const [modelPath, tokensText = '256', roundsText = '3'] = process.argv.slice(2);
const tokens = Number(tokensText);
const contextSize = 512;
const sampling = { temperature: 1, topP: null, seed: null, frequencyPenalty: 0, presencePenalty: 0 };
const messages = [{ role: 'user', content: 'Tell me a story about Mia.' }];

async function throughEngine(streams) {
  const engine = await Engine.start({ settings: { modelPath, slots: streams, contextSize, gpu: 'none' } });
  const run = async () => {
    let count = 0;
    while (count < tokens) {
      const generation = engine.generate({ messages, maxTokens: tokens - count, sampling });
      for await (const _ of generation);
      count += generation.outcome().completionTokens || 1;
    }
    return count;
  };
  await run();
  const from = performance.now();
  const counts = await Promise.all(Array.from({ length: streams }, run));
  const rate = (counts.reduce((a, b) => a + b) / (performance.now() - from)) * 1000;
  await engine.close();
  return rate;
}

async function alone(streams) {
  const llama = await getLlama({ gpu: false, build: 'never', maxThreads: 1, logLevel: LlamaLogLevel.error });
  const model = await llama.loadModel({ modelPath });
  const context = await model.createContext({ contextSize, sequences: streams, threads: 1 });
  const prompt = model.tokenize('<|im_start|>user\nTell me a story about Mia.<|im_end|>\n<|im_start|>assistant\n', true);
  const sequences = Array.from({ length: streams }, () => context.getSequence());
  const run = async (sequence) => {
    let count = 0;
    while (count < tokens) {
      await sequence.clearHistory();
      for await (const token of sequence.evaluate(prompt, {
        temperature: 1,
        topK: 0,
        topP: 1,
        seed: 1 + Math.floor(Math.random() * 1e9),
      })) {
        model.detokenize([token], true);
        if (++count >= tokens) break;
      }
    }
    return count;
  };
  await run(sequences[0]);
  const from = performance.now();
  const counts = await Promise.all(sequences.map(run));
  const rate = (counts.reduce((a, b) => a + b) / (performance.now() - from)) * 1000;
  await llama.dispose();
  return rate;
}

for (const streams of [1, 4, 16]) {
  const rates = { engine: [], alone: [] };
  for (let round = 0; round < Number(roundsText); round++) {
    rates.alone.push(await alone(streams));
    rates.engine.push(await throughEngine(streams));
  }
  const best = (list) => Math.max(...list);
  console.log(
    `${streams} streams: alone ${rates.alone.map(Math.round).join(' ')}, through the engine process ${rates.engine.map(Math.round).join(' ')} tokens/s, best to best ${(best(rates.engine) / best(rates.alone)).toFixed(2)}`,
  );
}
