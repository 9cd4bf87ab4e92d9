import { readdirSync, readFileSync } from 'node:fs';
import { loadWeights } from './src/engine/process/weights.js';
import { nativeContext, nativeTokens, newSampler } from './src/engine/process/native.js';
const { model, contextOptions } = await loadWeights({ modelPath: process.argv[2]!, gpu: 'none' } as any);
const ctx = await model.createContext({ contextSize: 512, sequences: 16, ...contextOptions });
const n = nativeContext(ctx);
const s = newSampler(model, { temperature: 0 } as any);
const task = () => readdirSync('/proc/self/task').map((t) => { const q = readFileSync(`/proc/self/task/${t}/schedstat`, 'utf8').split(' '); return { t: Number(t), cpu: Number(q[0]) / 1000, n: Number(q[2]) }; });
const mode = process.argv[3];
let tok = 5;
const N = Number(process.argv[4] ?? 400);
for (let rep = 0; rep < 4; rep++) {
  n.disposeSequence(0);
  const b = task(); const t0 = performance.now();
  for (let i = 0; i < N; i++) {
    n.initBatch(1);
    const [p] = n.addToBatch(0, i, nativeTokens([tok as any]), Uint32Array.of(0));
    if (mode === 'pair') { const d = n.decodeBatch(); const r = n.sampleToken(p!, s); await d; tok = await r; }
    else if (mode === 'sampleonly') { n.decodeBatch(); tok = await n.sampleToken(p!, s); }
    else { await n.decodeBatch(); tok = await n.sampleToken(p!, s); }
  }
  const ms = performance.now() - t0; const a = task();
  const d = a.map((k) => ({ cpu: (k.cpu - (b.find((o) => o.t === k.t)?.cpu ?? 0)) / N, n: (k.n - (b.find((o) => o.t === k.t)?.n ?? 0)) / N, main: k.t === process.pid })).filter((k) => k.cpu > 3);
  console.log(mode, 'us/token wall', (ms * 1000 / N).toFixed(0), d.map((k) => `${k.main ? 'main' : 'pool'} ${k.cpu.toFixed(0)}us ${k.n.toFixed(1)}sw`).join('  '));
}
process.exit(0);
