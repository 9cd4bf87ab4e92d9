/**
 * Many concurrent requests of every kind against a whole network: valid requests, each verified by `scripts/verify-response.sh`
 * with curl and openssl alone, and some hundred invalid ones. MIXED_REQUESTS=200 sends two hundred.
 */
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import type { DemoNetwork } from './support/demo-network.js';
import { fuzz, sendValidRequests } from './support/fuzz/run.js';
import { ROOT } from './support/npm-start.js';
import { runCommand } from './support/run-command.js';
import { failuresOfSharedNetwork, sharedNetwork } from './support/shared-network.js';

/** Deadline that only a hang exceeds, even with hundreds of requests on a busy machine. */
const STUCK_MS = 30 * 60_000;
const REQUESTS = Number(process.env.MIXED_REQUESTS ?? 40);
const AT_ONCE = 6;

let network: DemoNetwork;

beforeAll(async () => {
  network = await sharedNetwork();
});

const QUESTIONS = [
  'What is the capital of Italy?',
  'What is 7 + 8?',
  'Tell me a story about Mia.',
  'Repeat after me: größe 東京 🙂 \u200fשלום',
  'line one\r\nline two',
  'What is the weather in Paris?',
  '',
];
const tool = { description: 'Get the weather for a city' };
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };

/** Requests of each format with variations: tools, stops, seeds, limits, schemas, thinking. */
const SHAPES: readonly [string, (text: string, index: number) => Record<string, unknown>][] = [
  ['/v1/chat/completions', (text) => ({ messages: [{ role: 'user', content: text }], max_tokens: 40 })],
  [
    '/v1/chat/completions',
    (text, seed) => ({ messages: [{ role: 'user', content: [{ type: 'text', text }] }], seed, max_completion_tokens: 9 }),
  ],
  [
    '/v1/chat/completions',
    (text) => ({
      messages: [{ role: 'user', content: text }],
      tools: [{ type: 'function', function: { name: 'get_weather', ...tool, parameters } }],
    }),
  ],
  ['/v1/completions', (text) => ({ prompt: `Once upon a time ${text}`, max_tokens: 12, stop: [' the'] })],
  ['/v1/responses', (text) => ({ input: text || 'Hi', max_output_tokens: 40 })],
  ['/v1/responses', (text) => ({ messages: [{ role: 'user', content: text }], max_tokens: 1 })],
  [
    '/v1/responses',
    (text) => ({
      input: [{ role: 'user', content: text || 'Hi' }],
      tools: [{ type: 'function', name: 'get_weather', ...tool, parameters }],
    }),
  ],
  ['/v1/messages', (text) => ({ messages: [{ role: 'user', content: text || 'Hi' }], max_tokens: 40, thinking: { type: 'adaptive' } })],
  [
    '/v1/messages',
    (text) => ({
      messages: [{ role: 'user', content: text || 'Hi' }],
      max_tokens: 60,
      tools: [{ name: 'get_weather', ...tool, input_schema: parameters }],
    }),
  ],
  ['/v1/messages', (text) => ({ messages: [{ role: 'user', content: text || 'Hi' }], max_tokens: 20, stop_sequences: ['a'] })],
];

async function verify(index: number): Promise<string> {
  const stream = index % 2 === 1;
  const [path, shape] = SHAPES[Math.floor(index / 2) % SHAPES.length] as (typeof SHAPES)[number];
  const text = QUESTIONS[index % QUESTIONS.length] as string;
  const data = JSON.stringify({ model: network.model, ...shape(text, index), ...(stream ? { stream } : {}) });
  const access = [
    '--base-url',
    network.baseUrl,
    '--key',
    network.apiKey,
    '--path',
    path,
    '--data',
    data,
    // Alternates per round of shapes, so that 40 requests send each shape with and without a nonce, plain and streamed.
    ...(Math.floor(index / (2 * SHAPES.length)) % 2 === 0 ? ['--nonce'] : []),
  ];
  const { stdout, stderr } = await runCommand(join(ROOT, 'scripts/verify-response.sh'), access);
  const verdict = stdout.trimEnd().split('\n').at(-1) ?? '';
  return verdict === 'verified' ? verdict : `${path} ${data}: ${verdict} ${stderr}`;
}

describe('mixed requests, half of them streamed', () => {
  it(
    'all verify',
    async () => {
      const verdicts: string[] = [];
      let next = 0;
      const worker = async (): Promise<void> => {
        while (next < REQUESTS) verdicts.push(await verify(next++));
      };
      await Promise.all(Array.from({ length: AT_ONCE }, worker));
      expect(verdicts.filter((verdict) => verdict !== 'verified')).toEqual([]);
      expect(verdicts).toHaveLength(REQUESTS);
    },
    STUCK_MS,
  );
});

describe('fuzzed requests', () => {
  it(
    'are refused or served as documented, and the network goes on',
    async () => {
      const target = { baseUrl: network.baseUrl, apiKey: network.apiKey, model: network.model };
      const { faults, statuses } = await fuzz({ ...target, firstSeed: 500_000, cases: 300 });
      expect(faults).toEqual([]);
      expect(statuses.get(200)).toBeGreaterThan(20);
      expect(statuses.get(400)).toBeGreaterThan(50);
      expect(new Set(await sendValidRequests(target))).toEqual(new Set([200]));
      expect(failuresOfSharedNetwork()).toEqual([]);
    },
    STUCK_MS,
  );
});
