/**
 * Long-context bench: time and memory to read a prompt of 32,000 tokens, with each element type of the KV cache.
 *
 * Also measures the gaps between tokens of a running stream while the engine reads the end of such a prompt. There each token attends to
 * the most others, so that reading is slowest.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Engine } from '../../../apps/provider/src/engine/engine.js';
import type { GenerationRequest } from '../../../apps/provider/src/engine/messages.js';
import { ask, collect } from '../../../apps/provider/test/demo-model.js';
import { sized } from '../size.js';
import { median } from '../statistics.js';
import { GPU } from './gpu.js';

const PROMPT_TOKENS = sized(32_000, 1_200);
/** Tokens at the end of the prompt that are read beside the running stream. */
const END_TOKENS = sized(1_000, 300);
const CONTEXT = sized(34_816, 2_048);
/** Gaps of the stream before the prompt arrives. */
const USUAL_GAPS = sized(200, 5);
/** A gap may always take this time, in milliseconds (`FREE_ROUND_MS` in prefill-budget.ts). */
const FREE_GAP_MS = 30;
const SHAPE = `--arch qwen3 --layers 1 --dim 256 --heads 4 --kv-heads 4 --ff 640 --type Q8_0 --endless --context ${CONTEXT}`;

/** Resolves to whether every target was met. */
export async function benchLongContext(): Promise<boolean> {
  const directory = mkdtempSync(join(tmpdir(), 'inference-bench-'));
  try {
    const modelPath = join(directory, 'bench.gguf');
    const makeModel = fileURLToPath(new URL('../../make-model.ts', import.meta.url));
    execFileSync(process.execPath, ['--import', 'tsx', makeModel, '--out', modelPath, ...SHAPE.split(' ')], { stdio: 'inherit' });
    let met = true;
    for (const kvCacheType of ['f16', 'q8_0'] as const) met = (await measure(modelPath, kvCacheType)) && met;
    return met;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function measure(modelPath: string, kvCacheType: 'f16' | 'q8_0'): Promise<boolean> {
  // Without drafts, whose batches would change the usual gaps of a stream that runs alone.
  const settings = { modelPath, slots: 2, contextSize: CONTEXT, gpu: GPU, drafts: false, kvCacheType } as const;
  const engine = await Engine.start({ settings });
  try {
    const text = textOf(await lettersOf(engine, PROMPT_TOKENS));
    const cached = await lettersOf(engine, PROMPT_TOKENS - END_TOKENS);
    const begin = performance.now();
    const { promptTokens } = await collect(engine.generate(requestOf(text, 1)));
    const seconds = (performance.now() - begin) / 1000;
    const memory = 1024 * Number(execFileSync('ps', ['-o', 'rss=', '-p', String(engine.pid)], { encoding: 'utf8' }));
    const load = loadavg()[0]?.toFixed(0);
    console.log(`${kvCacheType}: ${promptTokens} tokens in ${seconds.toFixed(1)} s, ${Math.round(memory / 1e6)} MB (load ${load})`);
    const { usual, beside, tokens } = await gaps(engine, text.slice(0, cached) + text.slice(cached).toUpperCase());
    const target = Math.max(2 * median(usual), FREE_GAP_MS);
    const met = median(beside) <= target;
    console.log(
      `${kvCacheType}: gaps of a stream ${spread(usual)}; beside the last ${tokens} tokens of a prompt ${spread(beside)} ` +
        `(target: median at most ${target.toFixed(0)} ms): ${met ? 'met' : 'MISSED'}`,
    );
    return met;
  } finally {
    await engine.close();
  }
}

function spread(gaps: readonly number[]): string {
  const sorted = gaps.toSorted((a, b) => a - b);
  return `median ${median(gaps).toFixed(1)} ms (${gaps.length} gaps), 95 % below ${(sorted[Math.floor(0.95 * sorted.length)] ?? 0).toFixed(1)} ms`;
}

function textOf(letters: number): string {
  return 'the red boat went over the sea to the far land and came back '.repeat(Math.ceil(letters / 60)).slice(0, letters);
}

function requestOf(text: string, maxTokens: number): GenerationRequest {
  return { ...ask('', maxTokens), prompt: { type: 'text', text }, cacheScope: 'bench' };
}

/** Number of letters of `textOf` that make this number of tokens. */
async function lettersOf(engine: Engine, tokens: number): Promise<number> {
  const sample = 2_000;
  const { promptTokens } = await collect(engine.generate(requestOf(textOf(sample), 0)));
  return Math.floor((sample * tokens) / promptTokens);
}

/** Times between the messages of a stream, in milliseconds: before a prompt arrives, and while its uncached end is read. */
async function gaps(engine: Engine, text: string) {
  const usual: number[] = [];
  const beside: number[] = [];
  const stream = engine.generate({ ...requestOf('Once upon a time', CONTEXT - 100), cacheScope: null });
  let prompt: Promise<number> | null = null;
  let isRead = false;
  let last: number | null = null;
  for await (const _ of stream) {
    const now = performance.now();
    if (last !== null) (prompt === null ? usual : beside).push(now - last);
    last = now;
    if (isRead) break;
    if (prompt === null && usual.length >= USUAL_GAPS) {
      const generation = engine.generate(requestOf(text, 1));
      prompt = collect(generation).then(({ promptTokens }) => {
        isRead = true;
        return promptTokens - (generation.started?.cachedTokens ?? 0);
      });
    }
  }
  if (prompt === null || beside.length === 0) throw new Error('the stream ended before the prompt was read');
  return { usual, beside, tokens: await prompt };
}
