import { loadWeights } from './src/engine/process/weights.js';
import { newSampler } from './src/engine/process/native.js';
const { model } = await loadWeights({ modelPath: process.argv[2] } as any && { modelPath: process.argv[2]!, gpu: 'none', slots: 1, contextSize: 512 } as any);
for (const cfg of [{ temperature: 0 }, { temperature: 0, seed: 1 }, { temperature: 1, topK: 40, seed: 1 }, { temperature: 0, seed: 5, tokenBiasKeys: Uint32Array.of(1, 2), tokenBiasValues: Float32Array.of(-100, -100) }]) {
  for (let i = 0; i < 3; i++) { const t = performance.now(); const s = newSampler(model, cfg as any); const u = performance.now(); s.dispose(); console.log(JSON.stringify(cfg).slice(0, 60), (u - t).toFixed(3), (performance.now() - u).toFixed(3)); }
}
process.exit(0);
