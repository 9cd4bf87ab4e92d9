/**
 * Vision bench: compares the vision engine with its native library alone (alone.mjs): time to read an image, tokens per second, processor
 * time. Without a GPU, both use one thread.
 */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import sharp from 'sharp';
import { Engine } from '../../../apps/provider/src/engine/engine.js';
import type { GenerationRequest } from '../../../apps/provider/src/engine/messages.js';
import { writeProjector } from '../../fixtures/gguf/projector.js';
import { type Child, spawnChild } from '../../network/child.js';
import { sized } from '../size.js';
import { cpuSeconds, median } from '../statistics.js';

const TOKENS = sized(128, 16);
const ROUNDS = sized(9, 1);
/** Minimum speed of the engine relative to the library. */
const TARGET = 0.95;
const IMAGE_EDGE = 224;
/** Width of the random model, which has a tenth of the size of the smallest common vision models. */
const WIDTH = 512;
const SHAPE = `--arch qwen3 --layers 8 --dim ${WIDTH} --heads 8 --kv-heads 4 --ff 1280 --type Q8_0 --endless --context 4k`;
const QUESTION = 'What is on this picture?';

interface Figures {
  /** Time until the first token. */
  readonly promptMs: number;
  /** After the first token. */
  readonly tokensPerSecond: number;
  /** Of the whole answer. */
  readonly cpuSeconds: number;
}

/** Resolves to whether the targets were met. */
export async function benchVision(): Promise<boolean> {
  const directory = mkdtempSync(join(tmpdir(), 'inference-bench-'));
  const model = join(directory, 'bench.gguf');
  const projector = join(directory, 'mmproj-bench.gguf');
  let alone: Child | undefined;
  let engine: Engine | undefined;
  try {
    execFileSync(process.execPath, ['--import', 'tsx', script('../../make-model.ts'), '--out', model, ...SHAPE.split(' ')], {
      stdio: 'inherit',
    });
    writeProjector(projector, { imageSize: IMAGE_EDGE, patchSize: 14, dim: 192, heads: 3, layers: 4, ff: 768, outputLength: WIDTH }, 1);
    const argv = [script('./alone.mjs'), model, projector];
    alone = await spawnChild({ name: 'library alone', argv, env: process.env, logFile: join(directory, 'alone.log') });
    await Promise.race([alone.message, alone.exited.then(() => Promise.reject(new Error(`the library ended: ${alone?.exitReason()}`)))]);
    const gpu = process.platform === 'darwin' ? 'auto' : 'none';
    engine = await Engine.start({
      settings: { type: 'vision', modelPath: model, projectorPath: projector, slots: 4, contextSize: 1024, gpu, drafts: false },
    });
    return await compare(alone, engine);
  } finally {
    await engine?.close();
    await alone?.stop(3000);
    rmSync(directory, { recursive: true, force: true });
  }
}

async function compare(alone: Child, engine: Engine): Promise<boolean> {
  const figures: { alone: Figures[]; engine: Figures[] } = { alone: [], engine: [] };
  await ofEngine(engine, await picture());
  await ofLibrary(alone, await picture());
  for (let round = 0; round < ROUNDS; round++) {
    const image = await picture();
    // Alternating order, because the second measurement runs on a warmer machine.
    if (round % 2 === 0) figures.alone.push(await ofLibrary(alone, image));
    figures.engine.push(await ofEngine(engine, image));
    if (round % 2 === 1) figures.alone.push(await ofLibrary(alone, image));
  }
  const of = (list: readonly Figures[], name: keyof Figures): number => median(list.map((each) => each[name]));
  const reading = of(figures.alone, 'promptMs') / of(figures.engine, 'promptMs');
  const decoding = of(figures.engine, 'tokensPerSecond') / of(figures.alone, 'tokensPerSecond');
  const verdict = (ratio: number): string => `ratio ${ratio.toFixed(3)} (target ${TARGET}): ${ratio >= TARGET ? 'met' : 'MISSED'}`;
  console.log(
    `image of ${IMAGE_EDGE} x ${IMAGE_EDGE} pixels: library alone ${of(figures.alone, 'promptMs').toFixed(0)} ms, engine ` +
      `${of(figures.engine, 'promptMs').toFixed(0)} ms from request to first token, ${verdict(reading)}`,
  );
  console.log(
    `answer: library alone ${Math.round(of(figures.alone, 'tokensPerSecond'))} tokens/s, engine ` +
      `${Math.round(of(figures.engine, 'tokensPerSecond'))} tokens/s, ${verdict(decoding)}`,
  );
  console.log(
    `processor time of an answer of ${TOKENS} tokens: library alone ${of(figures.alone, 'cpuSeconds').toFixed(2)} s, engine ` +
      `${of(figures.engine, 'cpuSeconds').toFixed(2)} s`,
  );
  const streams = 4;
  const begin = performance.now();
  await Promise.all(Array.from({ length: streams }, async () => ofEngine(engine, await picture())));
  const seconds = (performance.now() - begin) / 1000;
  console.log(`${streams} streams at once, each with an image: ${Math.round((streams * TOKENS) / seconds)} tokens/s in all`);
  return reading >= TARGET && decoding >= TARGET;
}

async function ofLibrary(alone: Child, image: Uint8Array): Promise<Figures> {
  const cpuBefore = cpuSeconds(alone.pid);
  const answer = await alone.ask({
    prompt: `<|im_start|>user\n<__media__>${QUESTION}<|im_end|>\n<|im_start|>assistant\n`,
    image: `data:image/png;base64,${Buffer.from(image).toString('base64')}`,
    tokens: TOKENS,
  });
  const { promptMs, tokensPerSecond, tokens } = answer as { promptMs: number; tokensPerSecond: number; tokens: number };
  if (tokens !== TOKENS) throw new Error(`the library generated ${tokens} tokens`);
  return { promptMs, tokensPerSecond, cpuSeconds: cpuSeconds(alone.pid) - cpuBefore };
}

async function ofEngine(engine: Engine, image: Uint8Array): Promise<Figures> {
  const pid = engine.pid ?? Number.NaN;
  const cpuBefore = cpuSeconds(pid);
  const begin = performance.now();
  let first = 0;
  let firstTokens = 0;
  let tokens = 0;
  for await (const batch of engine.generate(requestWith(image))) {
    for (const piece of batch) tokens += piece.tokens;
    if (first !== 0) continue;
    first = performance.now();
    firstTokens = tokens;
  }
  if (tokens !== TOKENS) throw new Error(`the engine generated ${tokens} tokens`);
  const tokensPerSecond = (1000 * (tokens - firstTokens)) / (performance.now() - first);
  return { promptMs: first - begin, tokensPerSecond, cpuSeconds: cpuSeconds(pid) - cpuBefore };
}

function requestWith(data: Uint8Array): GenerationRequest {
  const content = [{ type: 'image', data, field: 'messages[0].content[0]' } as const, { type: 'text', text: QUESTION } as const];
  return {
    prompt: { type: 'chat', messages: [{ role: 'user', content }], tools: [], continuesLast: false, thinking: null, skipsThinking: false },
    maxTokens: TOKENS,
    grammar: null,
    logprobs: null,
    sampling: { temperature: 0, topP: null, topK: null, minP: null, logitBias: [], seed: null, frequencyPenalty: 0, presencePenalty: 0 },
    cacheScope: null,
  };
}

/** A new picture for each request, because the library caches the last prompt. */
function picture(): Promise<Buffer> {
  return sharp(randomBytes(8 * 8 * 3), { raw: { width: 8, height: 8, channels: 3 } })
    .resize(IMAGE_EDGE, IMAGE_EDGE, { kernel: 'cubic' })
    .png()
    .toBuffer();
}

function script(relative: string): string {
  return fileURLToPath(new URL(relative, import.meta.url));
}
