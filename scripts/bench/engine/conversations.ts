/**
 * Conversations bench: whether the engine keeps the KV cache of several conversations, whose clients alternate.
 *
 * If so, the first token of a conversation's second turn comes much sooner than that of its first. Also prints the pauses of one stream
 * while the engine reads other prompts.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Engine } from '../../../apps/provider/src/engine/engine.js';
import type { GenerationRequest, PromptMessage } from '../../../apps/provider/src/engine/messages.js';
import { ask, conversation } from '../../../apps/provider/test/demo-model.js';
import { sized } from '../size.js';
import { median, percentile } from '../statistics.js';
import { GPU } from './gpu.js';

const CLIENTS = sized(16, 2);
const PROMPT_TOKENS = sized(4000, 200);
const CONTEXT = 8192;
/** Maximum time to first token of a second turn, relative to the first turn. */
const SECOND_TURN_TARGET = 0.1;
/** Arguments for the random model. */
const SHAPE = '--arch qwen3 --layers 4 --dim 256 --heads 4 --kv-heads 2 --ff 640 --type Q8_0 --endless --context 16k';
const TEXT = 'The quick brown fox jumps over the lazy dog and runs to the sea. ';

/** Resolves to whether every target was met. */
export async function benchConversations(): Promise<boolean> {
  const directory = mkdtempSync(join(tmpdir(), 'inference-bench-'));
  const modelPath = join(directory, 'bench.gguf');
  const makeModel = fileURLToPath(new URL('../../make-model.ts', import.meta.url));
  execFileSync(process.execPath, ['--import', 'tsx', makeModel, '--out', modelPath, ...SHAPE.split(' ')], { stdio: 'inherit' });
  const engine = await Engine.start({ settings: { modelPath, slots: CLIENTS, contextSize: CONTEXT, gpu: GPU } });
  try {
    const met = await secondTurns(engine);
    await pauses(engine);
    return met;
  } finally {
    await engine.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

async function secondTurns(engine: Engine): Promise<boolean> {
  const conversations = Array.from({ length: CLIENTS }, (_, client) => ({
    cacheScope: `client-${client}`,
    messages: [{ role: 'user', content: longText(client) }] as PromptMessage[],
    firstMs: 0,
    secondMs: 0,
  }));
  for (const each of conversations) {
    const { ms, text } = await turn(engine, each);
    each.firstMs = ms;
    each.messages.push({ role: 'assistant', content: text }, { role: 'user', content: 'And what does the dog do?' });
  }
  for (const each of conversations) each.secondMs = (await turn(engine, each)).ms;
  const ratio = median(conversations.map(({ firstMs, secondMs }) => secondMs / firstMs));
  const met = ratio <= SECOND_TURN_TARGET;
  const [first, second] = (['firstMs', 'secondMs'] as const).map((name) => median(conversations.map((each) => each[name])));
  console.log(
    `second turn of ${PROMPT_TOKENS} tokens, ${CLIENTS} clients in turn: first token after ${second?.toFixed(0)} ms, first turn ` +
      `${first?.toFixed(0)} ms, ratio ${ratio.toFixed(3)} (target: at most ${SECOND_TURN_TARGET}): ${met ? 'met' : 'MISSED'}`,
  );
  return met;
}

interface Turn {
  readonly cacheScope: string;
  readonly messages: readonly PromptMessage[];
}

/** Runs one turn of a conversation. Resolves to the answer's text and the time to first token. */
async function turn(engine: Engine, { cacheScope, messages }: Turn): Promise<{ readonly ms: number; readonly text: string }> {
  const begin = performance.now();
  let ms = Number.NaN;
  let text = '';
  for await (const batch of engine.generate({ ...ask('', 8), prompt: conversation(messages), cacheScope })) {
    if (Number.isNaN(ms)) ms = performance.now() - begin;
    for (const piece of batch) text += piece.text;
  }
  return { ms, text };
}

/** Prints the pauses between tokens of one stream, alone and during the prefill of long prompts. */
async function pauses(engine: Engine): Promise<void> {
  const request: GenerationRequest = ask('Tell me a story.', sized(600, 64));
  const alone = await pausesOf(engine, request);
  let isRunning = true;
  const streamed = pausesOf(engine, request).finally(() => {
    isRunning = false;
  });
  let prompts = 0;
  while (isRunning) {
    await turn(engine, { cacheScope: `prompt-${prompts}`, messages: [{ role: 'user', content: longText(1000 + prompts) }] });
    prompts++;
  }
  const beside = await streamed;
  const text = (values: number[]): string => {
    const ascending = values.toSorted((a, b) => a - b);
    return `median ${median(ascending).toFixed(1)} ms, p99 ${percentile(ascending, 0.99).toFixed(1)} ms`;
  };
  console.log(`pauses of a stream: alone ${text(alone)}; while ${prompts} prompts of ${PROMPT_TOKENS} tokens are read, ${text(beside)}`);
}

/** Times between the batches of an answer, in milliseconds. */
async function pausesOf(engine: Engine, request: GenerationRequest): Promise<number[]> {
  const times: number[] = [];
  let last = Number.NaN;
  for await (const _ of engine.generate(request)) {
    const now = performance.now();
    if (!Number.isNaN(last)) times.push(now - last);
    last = now;
  }
  return times;
}

/** Text of about five tokens per six letters. The leading number gives every prompt a different prefix. */
function longText(number: number): string {
  return `${number} ${TEXT.repeat(Math.ceil((2 * PROMPT_TOKENS) / TEXT.length))}`.slice(0, Math.round(PROMPT_TOKENS * 1.19));
}
