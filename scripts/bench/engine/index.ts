/**
 * Engine bench: tokens per second through a whole network (coordinator and provider), relative to the library node-llama-cpp alone.
 *
 * Then measures the time to the first token. The model has random weights and almost never ends a response before its limit.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Child, spawnChild } from '../../network/child.js';
import { type Network, startNetwork } from '../../network/network.js';
import { runLoad } from '../load.js';
import { sized } from '../size.js';
import { median } from '../statistics.js';
import { benchFirstToken } from './first-token.js';

const STREAMS = sized([1, 4, 16], [1, 4]);
const GENERATED_TOKENS = sized(256, 32);
/** A unique number per request prevents full prefix-cache hits. */
const QUESTION = 'Please write about number {} and what it is good for.';
const ROUNDS = sized(3, 1);
const ROUND_SECONDS = sized(4, 0.5);
/** Minimum ratio. */
const TARGET = 0.9;
/** Arguments for the random model. */
const SHAPE = '--arch qwen3 --layers 4 --dim 256 --heads 4 --kv-heads 2 --ff 640 --type Q8_0 --endless --context 16k';

/** Resolves to whether every target was met. */
export async function benchEngine(): Promise<boolean> {
  const directory = mkdtempSync(join(tmpdir(), 'inference-bench-'));
  const model = join(directory, 'bench.gguf');
  let alone: Child | undefined;
  let network: Network | undefined;
  try {
    execFileSync(process.execPath, ['--import', 'tsx', script('../../make-model.ts'), '--out', model, ...SHAPE.split(' ')], {
      stdio: 'inherit',
    });
    alone = await spawnChild({
      name: 'engine alone',
      argv: [script('./alone.mjs'), model],
      env: process.env,
      logFile: join(directory, 'alone.log'),
    });
    await Promise.race([alone.message, alone.exited.then(() => Promise.reject(new Error(`the engine ended: ${alone?.exitReason()}`)))]);
    network = await startNetwork({
      port: 0,
      providers: 1,
      dataDir: join(directory, 'data'),
      modelPath: model,
      providerArgs: ['--slots', String(Math.max(...STREAMS))],
      coordinatorEnv: { LOG_LEVEL: 'warn' },
    });
    let met = true;
    for (const streams of STREAMS) met = (await compare(alone, network, streams)) && met;
    await network.stop();
    network = undefined;
    await alone.stop(3000);
    alone = undefined;
    return (await benchFirstToken(directory, model)) && met;
  } finally {
    await network?.stop();
    await alone?.stop(3000);
    rmSync(directory, { recursive: true, force: true });
  }
}

async function compare(alone: Child, network: Network, streams: number): Promise<boolean> {
  const rates: { alone: number[]; network: number[] } = { alone: [], network: [] };
  await throughNetwork(network, streams, sized(1, 0.2));
  for (let round = 0; round < ROUNDS; round++) {
    rates.alone.push(await aloneRate(alone, streams));
    rates.network.push(await throughNetwork(network, streams, ROUND_SECONDS));
  }
  const ratio = median(rates.network) / median(rates.alone);
  const met = ratio >= TARGET;
  console.log(
    `${String(streams).padStart(2)} streams: engine alone ${Math.round(median(rates.alone))} tokens/s, through the network ` +
      `${Math.round(median(rates.network))} tokens/s, ratio ${ratio.toFixed(3)} (target ${TARGET}): ${met ? 'met' : 'MISSED'}`,
  );
  return met;
}

async function aloneRate(alone: Child, streams: number): Promise<number> {
  const { tokensPerSecond } = await alone.ask({ streams, seconds: ROUND_SECONDS, generatedTokens: GENERATED_TOKENS, question: QUESTION });
  return tokensPerSecond as number;
}

/** Tokens per second that clients receive under closed-loop load. */
async function throughNetwork(network: Network, streams: number, seconds: number): Promise<number> {
  let tokens = 0;
  const result = await runLoad({
    url: `${network.baseUrl}/v1/chat/completions`,
    headers: { authorization: `Bearer ${network.apiKey}` },
    body: (index) =>
      JSON.stringify({
        model: network.models[0],
        messages: [{ role: 'user', content: QUESTION.replace('{}', String(index)) }],
        max_tokens: GENERATED_TOKENS,
        stream: true,
        stream_options: { include_usage: true },
      }),
    concurrency: streams,
    durationMs: seconds * 1000,
    check: (status, body) => {
      const usage = /"completion_tokens":(\d+)/.exec(body);
      if (status !== 200 || usage === null || !body.endsWith('data: [DONE]\n\n')) throw new Error(`answer ${status}: ${body.slice(-300)}`);
      tokens += Number(usage[1]);
    },
  });
  return tokens / result.seconds;
}

function script(relative: string): string {
  return fileURLToPath(new URL(relative, import.meta.url));
}
