/**
 * Second part of the engine bench: time to the first token of uncached prompts through a whole network.
 *
 * Compares temperature 0 and a fixed seed with the usual sampling.
 */
import { join } from 'node:path';
import { type Network, startNetwork } from '../../network/network.js';
import { sized } from '../size.js';
import { median } from '../statistics.js';

/** Prompt tokens, and number of requests of each kind. */
const PROMPTS: readonly (readonly [tokens: number, rounds: number])[] = sized(
  [
    [1_200, 5],
    [4_400, 5],
    [15_000, 3],
  ],
  [[300, 1]],
);
/** Sampling of each kind. `target`: maximum time relative to `usual`; null: no target. */
const KINDS = {
  usual: { temperature: 1, target: null },
  'temperature 0': { temperature: 0, target: 1.2 },
  'with a seed': { temperature: 1, seed: 7, target: 1.5 },
} as const;
type Kind = keyof typeof KINDS;

/** Text of about five tokens per six letters in the model's vocabulary. */
const TEXT = 'The quick brown fox jumps over the lazy dog and runs to the sea. ';
const NO_RATE_LIMITS = { RATE_LIMIT_ADDRESS: '0', RATE_LIMIT_KEY: '0' };

/** Resolves to whether every target was met. */
export async function benchFirstToken(directory: string, modelPath: string): Promise<boolean> {
  const network = await startNetwork({
    port: 0,
    providers: 1,
    dataDir: join(directory, 'first-token'),
    modelPath,
    providerArgs: ['--slots', '2', '--context', '16384'],
    coordinatorEnv: { LOG_LEVEL: 'warn', ...NO_RATE_LIMITS },
  });
  try {
    // Warm-up.
    await firstToken(network, 'usual', 300);
    let met = true;
    for (const [tokens, rounds] of PROMPTS) met = (await compareKinds(network, tokens, rounds)) && met;
    return met;
  } finally {
    await network.stop();
  }
}

/** Prints the median times of all kinds of sampling. Resolves to whether the targets were met. */
async function compareKinds(network: Network, size: number, rounds: number): Promise<boolean> {
  const times: Record<Kind, number[]> = { usual: [], 'temperature 0': [], 'with a seed': [] };
  const kinds = Object.keys(KINDS) as Kind[];
  let tokens = 0;
  for (let round = 0; round < rounds; round++) {
    for (const kind of kinds) {
      const answer = await firstToken(network, kind, size);
      times[kind].push(answer.ms);
      tokens = answer.tokens;
    }
  }
  let met = true;
  const parts = kinds.map((kind) => {
    const { target } = KINDS[kind];
    // Compares adjacent requests, because other load on the machine varies.
    const ratio = median(times[kind].map((ms, round) => ms / (times.usual[round] as number)));
    const isMet = target === null || ratio <= target;
    met = met && isMet;
    const verdict = target === null ? '' : `, ratio ${ratio.toFixed(2)} (target: at most ${target}): ${isMet ? 'met' : 'MISSED'}`;
    return `${kind} ${median(times[kind]).toFixed(0)} ms${verdict}`;
  });
  console.log(`first token of a cold prompt, ${String(tokens).padStart(6)} tokens: ${parts.join('; ')}`);
  return met;
}

let requestCount = 0;

/** Sends a prompt of about `size` tokens. Resolves to the milliseconds until its response of one token, and its exact size. */
async function firstToken(network: Network, kind: Kind, size: number): Promise<{ readonly ms: number; readonly tokens: number }> {
  const { target: _, ...sampling } = KINDS[kind];
  // A leading number gives every prompt a different prefix.
  const content = `${requestCount++} ${TEXT.repeat(Math.ceil((2 * size) / TEXT.length))}`.slice(0, Math.round(size * 1.19));
  const body = { model: network.models[0], messages: [{ role: 'user', content }], max_tokens: 1, ...sampling };
  const begin = performance.now();
  const response = await fetch(`${network.baseUrl}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${network.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  const ms = performance.now() - begin;
  if (!response.ok) throw new Error(`answer ${response.status}: ${text.slice(0, 300)}`);
  const { usage } = JSON.parse(text) as { usage: { prompt_tokens: number; prompt_tokens_details?: { cached_tokens?: number } } };
  if ((usage.prompt_tokens_details?.cached_tokens ?? 0) > 64) throw new Error('the prompt was not cold');
  return { ms, tokens: usage.prompt_tokens };
}
