// Tokens per second through the engine process against node-llama-cpp alone in one process, at 1, 4 and 16 streams.
// Rewards for repeating keep a small model from ending, so that every stream has the same length. Rates are taken over
// windows of 100 ms; on a machine with other work on it, compare the best decile of each side.
// usage: node bench/engine.mjs MODEL.gguf [tokens per stream] [rounds] [streams,streams]      (after a build)
import { getLlama, LlamaLogLevel } from 'node-llama-cpp';
import { Engine } from '../dist/engine/engine.js';

const [modelPath, tokensText = '400', roundsText = '3', streamsText = '1,4,16'] = process.argv.slice(2);
const tokens = Number(tokensText);
const contextSize = 1024;
const question = 'Count from 1 to 9.';
const sampling = { temperature: 0, topP: null, seed: null, frequencyPenalty: -2, presencePenalty: -2 };

async function throughEngine(streams) {
  const engine = await Engine.start({ settings: { modelPath, slots: streams, contextSize, gpu: 'none' } });
  const run = async (maxTokens) => {
    const generation = engine.generate({ messages: [{ role: 'user', content: question }], maxTokens, sampling });
    for await (const batch of generation) arrived(batch.length);
    return generation.outcome().completionTokens;
  };
  await run(8);
  const rates = await measure(Array.from({ length: streams }, () => () => run(tokens)));
  await engine.close();
  return rates;
}

async function alone(streams) {
  const llama = await getLlama({ gpu: false, build: 'never', maxThreads: 1, logLevel: LlamaLogLevel.error });
  const model = await llama.loadModel({ modelPath });
  const context = await model.createContext({ contextSize, sequences: streams, threads: 1 });
  const prompt = model.tokenize(`<|im_start|>user\n${question}<|im_end|>\n<|im_start|>assistant\n`, true);
  const sequences = Array.from({ length: streams }, () => context.getSequence());
  const run = async (sequence, limit) => {
    const generated = [];
    const repeatPenalty = { penalty: 1, frequencyPenalty: -2, presencePenalty: -2, punishTokens: () => generated, maxPunishTokens: tokens };
    await sequence.clearHistory();
    for await (const token of sequence.evaluate(prompt, { temperature: 0, topK: 0, topP: 1, seed: 1, repeatPenalty })) {
      generated.push(token);
      model.detokenize([token], true);
      arrived(1);
      if (generated.length >= limit) break;
    }
    return generated.length;
  };
  await run(sequences[0], 8);
  const rates = await measure(sequences.map((sequence) => () => run(sequence, tokens)));
  await llama.dispose();
  return rates;
}

let windows = [];
let windowStart = 0;

function arrived(count) {
  const index = Math.floor((performance.now() - windowStart) / 100);
  windows[index] = (windows[index] ?? 0) + count;
}

/** Tokens per second of every whole window in which all streams ran. */
async function measure(runs) {
  windows = [];
  windowStart = performance.now();
  let firstEnd = Number.POSITIVE_INFINITY;
  await Promise.all(
    runs.map(async (run) => {
      await run();
      firstEnd = Math.min(firstEnd, performance.now() - windowStart);
    }),
  );
  return Array.from(windows.slice(1, Math.floor(firstEnd / 100)), (count) => (count ?? 0) * 10);
}

for (const streams of streamsText.split(',').map(Number)) {
  const rates = { engine: [], alone: [] };
  for (let round = 0; round < Number(roundsText); round++) {
    rates.alone.push(...(await alone(streams)));
    rates.engine.push(...(await throughEngine(streams)));
  }
  const at = (list, part) => Math.round([...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(part * list.length))]);
  const line = (part) =>
    `${at(rates.alone, part)} alone, ${at(rates.engine, part)} through, ${(at(rates.engine, part) / at(rates.alone, part)).toFixed(2)}`;
  console.log(
    `${streams} streams, tokens/s: median ${line(0.5)}; best decile ${line(0.9)}  (${rates.alone.length}, ${rates.engine.length} windows)`,
  );
}
