import { loadWeights } from './src/engine/process/weights.js';
import { nativeContext } from './src/engine/process/native.js';
import { findRepeatability } from './src/engine/process/repeatability.js';
for (const modelPath of process.argv.slice(2)) for (const sequences of [1, 4, 16]) {
const { model, contextOptions } = await loadWeights({ modelPath, slots: sequences, contextSize: 512, gpu: 'none' } as any);
const ctx = await model.createContext({ contextSize: 512, sequences, ...contextOptions });
const c = process.cpuUsage();
const r = await findRepeatability({ context: nativeContext(ctx), model, sequences, mayShare: true });
const u = process.cpuUsage(c);
console.log(modelPath.split('/').at(-1), sequences, model.embeddingVectorSize, model.fileInsights.totalLayers, r, ((u.user+u.system)/1000).toFixed(0), 'ms cpu');
await ctx.dispose(); await model.dispose();
}
process.exit(0);
