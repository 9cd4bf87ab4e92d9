/**
 * Drafts bench: tokens per second of one stream with and without drafts, in alternating rounds.
 *
 * A draft is a guess at the next tokens, copied from the prompt (prompt lookup), which the model checks in one step. A repetitive text
 * represents edits and extractions, because the models are too small to copy on demand.
 *
 * Prompts are cached, so mostly decoding is measured. Other load on the machine affects processor time less.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Engine } from '../../../apps/provider/src/engine/engine.js';
import type { GenerationRequest, Sampling } from '../../../apps/provider/src/engine/messages.js';
import { ask, collect, demoModel } from '../../../apps/provider/test/demo-model.js';
import { sized } from '../size.js';
import { cpuSeconds, median } from '../statistics.js';
import { GPU } from './gpu.js';

const ROUNDS = sized(7, 1);
const ROUND_SECONDS = sized(3, 0.2);
const GENERATED_TOKENS = 256;
/** Minimum ratios of tokens per second with drafts to without. */
const REPEATING_TARGET = 1.6;
const OTHER_TARGET = 0.97;

interface Case {
  readonly name: string;
  readonly target: number;
  readonly prompt: GenerationRequest['prompt'] | string;
  readonly sampling: Partial<Sampling>;
}

const REPEATING: Case = {
  name: 'a text that repeats',
  target: REPEATING_TARGET,
  prompt: { type: 'text', text: 'a b c d e f g h '.repeat(20) },
  sampling: { temperature: 0 },
};
const OTHERS: readonly Case[] = [
  { name: 'a question', target: OTHER_TARGET, prompt: 'How much is 34 plus 58?', sampling: { temperature: 0 } },
  { name: 'a sampled text', target: OTHER_TARGET, prompt: 'Tell me a story about Mia.', sampling: { temperature: 1, seed: 1 } },
];

/** Resolves to whether every target was met. */
export async function benchDrafts(): Promise<boolean> {
  const directory = mkdtempSync(join(tmpdir(), 'inference-bench-'));
  try {
    const random = join(directory, 'random-60m.gguf');
    const args = ['--preset', sized('60m', 'tiny'), '--type', 'Q8_0', '--endless', '--out', random];
    const makeModel = fileURLToPath(new URL('../../make-model.ts', import.meta.url));
    execFileSync(process.execPath, ['--import', 'tsx', makeModel, ...args], { stdio: 'inherit' });
    let met = true;
    for (const [name, modelPath] of [
      ['demo model', demoModel()],
      ['60M random weights', random],
    ] as const) {
      met = (await compareModel(name, modelPath)) && met;
    }
    return met;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function compareModel(model: string, modelPath: string): Promise<boolean> {
  const settings = { modelPath, slots: 1, contextSize: 2048, gpu: GPU } as const;
  const [withDrafts, without] = await Promise.all([Engine.start({ settings }), Engine.start({ settings: { ...settings, drafts: false } })]);
  try {
    let met = true;
    for (const each of [REPEATING, ...OTHERS]) met = (await compare(model, each, withDrafts, without)) && met;
    return met;
  } finally {
    await Promise.all([withDrafts.close(), without.close()]);
  }
}

async function compare(model: string, { name, target, prompt, sampling }: Case, withDrafts: Engine, without: Engine): Promise<boolean> {
  const asked = { ...ask(typeof prompt === 'string' ? prompt : '', GENERATED_TOKENS, sampling), cacheScope: 'bench' };
  const request = typeof prompt === 'string' ? asked : { ...asked, prompt };
  const rounds: { rate: number; cpu: number }[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const base = await measure(without, request);
    const drafted = await measure(withDrafts, request);
    rounds.push({ rate: drafted.tokensPerSecond / base.tokensPerSecond, cpu: base.cpuPerToken / drafted.cpuPerToken });
  }
  const rate = median(rounds.map((round) => round.rate));
  const cpu = median(rounds.map((round) => round.cpu));
  const met = rate >= target;
  console.log(
    `${model}, ${name}: ${rate.toFixed(2)} of the tokens/s without drafts (target ${target}), ` +
      `${cpu.toFixed(2)} by processor time: ${met ? 'met' : 'MISSED'}`,
  );
  return met;
}

/** Generates one answer after another for `ROUND_SECONDS`. */
async function measure(engine: Engine, request: GenerationRequest): Promise<{ tokensPerSecond: number; cpuPerToken: number }> {
  const pid = engine.pid as number;
  const cpuBefore = cpuSeconds(pid);
  const begin = performance.now();
  let tokens = 0;
  while (performance.now() - begin < ROUND_SECONDS * 1000) tokens += (await collect(engine.generate(request))).tokens;
  const seconds = (performance.now() - begin) / 1000;
  return { tokensPerSecond: tokens / seconds, cpuPerToken: (cpuSeconds(pid) - cpuBefore) / tokens };
}
