import { loadWeights } from './src/engine/process/weights.js';
import { nativeContext, nativeTokens, newSampler } from './src/engine/process/native.js';
const { model, contextOptions } = await loadWeights({ modelPath: process.argv[2]!, gpu: 'none' } as any);
const ctx = await model.createContext({ contextSize: 4096, sequences: 4, ...contextOptions });
const n = nativeContext(ctx); const V = model.fileInfo.metadata.tokenizer.ggml.tokens.length;
const L = Number(process.argv[3] ?? 252);
const res: Record<string, number[]> = {};
for (let rep = 0; rep < 5; rep++) for (const slice of [16, 32, 48, 56, 60, 63, 64, 128, 512]) {
  n.disposeSequence(0); const c = process.cpuUsage();
  for (let at = 0; at < L; at += slice) { const t = Array.from({ length: Math.min(slice, L - at) }, (_, i) => ((at + i) * 7919 + 13) % V) as any[]; n.initBatch(t.length); n.addToBatch(0, at, nativeTokens(t), new Uint32Array(0)); await n.decodeBatch(); }
  const u = process.cpuUsage(c); (res[slice] ??= []).push((u.user + u.system) / L);
}
console.log(process.argv[2]!.split('/').at(-1), L, Object.entries(res).map(([k, v]) => `${k}: ${v.sort((a, b) => a - b)[2]!.toFixed(0)}`).join('  '));
process.exit(0);
