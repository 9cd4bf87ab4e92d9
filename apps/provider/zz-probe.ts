import { loadWeights } from './src/engine/process/weights.js';
import { nativeContext, nativeTokens, newSampler } from './src/engine/process/native.js';
const [,, modelPath, lens='8,20,40,100,300,600,1200'] = process.argv;
const settings: any = { modelPath, slots: 4, contextSize: 4096, gpu: 'none' };
const { model, contextOptions } = await loadWeights(settings);
const ctx = await model.createContext({ contextSize: 4096, sequences: 4, ...contextOptions });
const n = nativeContext(ctx);
const V0 = model.fileInfo.metadata.tokenizer.ggml.tokens.length;
console.log('V', V0, 'fa', (ctx as any).flashAttention, 'kvUnified?', (ctx as any)._kvUnified, 'batch', ctx.batchSize);
const V = model.fileInfo.metadata.tokenizer.ggml.tokens.length;
const s = newSampler(model, { temperature: 1, topK: 40, seed: 1 } as any);
const tok = (i: number) => ((i * 7919 + 13) % V) as any;
const clear = () => { for (let q = 0; q < 4; q++) n.disposeSequence(q); };
async function prompt(seq: number, from: number, to: number, slice: number) {
  for (let at = from; at < to; at += slice) {
    const t = Array.from({ length: Math.min(slice, to - at) }, (_, i) => tok(at + i));
    n.initBatch(t.length); n.addToBatch(seq, at, nativeTokens(t), new Uint32Array(0)); await n.decodeBatch();
  }
}
async function next(pos: number, rows: number, others: number[], lens: number[] = [], all = false) {
  n.initBatch(rows + others.length);
  const [place] = n.addToBatch(0, pos, nativeTokens(Array.from({ length: rows }, () => tok(pos))), all && rows>1 ? Uint32Array.from({length:rows},(_,i)=>i) : Uint32Array.of(0));
  others.forEach((o, i) => n.addToBatch(o, lens[i] ?? 0, nativeTokens([tok(o)]), all ? Uint32Array.of(0) : new Uint32Array(0)));
  await n.decodeBatch();
  const r = await n.sampleToken(place!, s, false, false, [[], false, false, false, 40], true);
  n.removeTokenCellsFromSequence(0, pos, -1);
  others.forEach((o, i) => n.removeTokenCellsFromSequence(o, lens[i] ?? 0, -1));
  return `${r[3]?.join()} ${r[4]}`;
}
for (const L of lens.split(',').map(Number)) {
  clear();
  await prompt(0, 0, L, 32);
  const r: any = {};
  r.one = await next(L, 1, []);
  r.two = await next(L, 2, []);
  r.three = await next(L, 3, []);
  r.s2 = await next(L, 1, [1]);
  r.s2far = await next(L, 1, [2]);
  r.s3 = await next(L, 1, [1, 2]);
  r.s4 = await next(L, 1, [1, 2, 3]);
  r.Atwo = await next(L,2,[],[],true); r.Athree = await next(L,3,[],[],true); r.As2 = await next(L,1,[1],[],true); r.As4 = await next(L,1,[1,2,3],[],true); r.As2far = await next(L,1,[2],[],true);
  await prompt(1, 0, 700, 32);
  r.s2long = await next(L, 1, [1], [700]);
  await prompt(2, 0, 1500, 32);
  r.s3long = await next(L, 1, [1, 2], [700, 1500]);
  clear(); await prompt(0, 0, L, 2); r.p2 = await next(L, 2, []);
  clear(); await prompt(0, 0, L, 1); r.p1 = await next(L, 2, []);
  clear(); await prompt(0, 0, L, 7); r.p7 = await next(L, 2, []);
  clear(); await prompt(0, 0, L, 64); r.p64 = await next(L, 2, []);
  clear(); await prompt(0, 0, L, 512); r.p512 = await next(L, 2, []);
  const groups = new Map<string, string[]>();
  for (const [k, v] of Object.entries(r) as any) groups.set(v, [...(groups.get(v) ?? []), k]);
  console.log(L, [...groups.values()].map((g) => g.join(' ')).join('  |  '));
}
process.exit(0);
