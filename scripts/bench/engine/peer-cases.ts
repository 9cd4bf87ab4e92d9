/** Requests with which the engine bench compares the agent and llama.cpp's server (the peer), and `judge`, which evaluates the figures. */
import { median } from '../statistics.js';

export type ModelName = '60M' | 'demo';

/** How agent and peer are started, and the cases that they then run. */
export interface Setup {
  /** Number of streams that a program can generate at once. */
  readonly slots: number;
  /** Tokens per slot. */
  readonly contextSize: number;
  /** Further arguments of the peer, by model. */
  readonly peerArgs: Readonly<Record<ModelName, readonly string[]>>;
  readonly cases: readonly PeerCase[];
}

export interface PeerCase {
  readonly name: string;
  readonly streams: number;
  /** Limit of tokens of an answer, by model, chosen so that a round takes a few seconds. */
  readonly tokens: Readonly<Record<ModelName, number>>;
  readonly path: '/v1/chat/completions' | '/v1/completions';
  /** Whether prompts may come from the cache. */
  readonly isCached: boolean;
  /** Whether answers may end before the limit. */
  readonly mayEnd: boolean;
  /** Body without limit and stream options. `longText` has 1,900 tokens. */
  readonly body: (index: number, longText: string) => Readonly<Record<string, unknown>>;
}

const CHAT = { path: '/v1/chat/completions', isCached: false, mayEnd: false } as const;

function question(index: number): { readonly messages: readonly object[] } {
  return { messages: [{ role: 'user', content: `Please write about number ${index} and what it is good for.` }] };
}

function greedy(streams: number, tokens: PeerCase['tokens']): PeerCase {
  return { ...CHAT, name: 'greedy', streams, tokens, body: (index) => ({ ...question(index), temperature: 0 }) };
}

function prompts(streams: number): PeerCase {
  // The leading number gives every prompt a different prefix.
  const body = (index: number, longText: string) => ({
    messages: [{ role: 'user', content: `${index} ${longText}` }],
    temperature: 0,
  });
  return { ...CHAT, name: 'prompts of 2,000 tokens', streams, tokens: { '60M': 16, demo: 16 }, body };
}

/** Strings may be long, so that an answer reaches its limit. */
const SCHEMA = {
  type: 'object',
  properties: {
    title: { type: 'string', minLength: 10 },
    rating: { type: 'integer' },
    notes: { type: 'array', items: { type: 'string', minLength: 60 }, minItems: 20 },
  },
  required: ['title', 'rating', 'notes'],
  additionalProperties: false,
};

const CITIES = ['Lima', 'Rome', 'Paris', 'Oslo', 'Madrid', 'Berlin', 'Cairo', 'Tokyo'];

const WEATHER = {
  type: 'function',
  function: {
    name: 'weather',
    description: 'Current weather of a city',
    parameters: { type: 'object', properties: { city: { type: 'string' }, days: { type: 'integer' } }, required: ['city'] },
  },
};

const sampled: PeerCase = {
  ...CHAT,
  name: 'sampled',
  streams: 16,
  tokens: { '60M': 64, demo: 256 },
  // The server's defaults of top_k and min_p would shorten its list of candidates.
  body: (index) => ({ ...question(index), temperature: 0.8, top_p: 0.95, top_k: 0, min_p: 0, seed: index }),
};

const schema: PeerCase = {
  ...CHAT,
  name: 'JSON schema',
  streams: 16,
  tokens: { '60M': 64, demo: 256 },
  body: (index) => ({
    ...question(index),
    temperature: 0,
    response_format: { type: 'json_schema', json_schema: { name: 'article', strict: true, schema: SCHEMA } },
  }),
};

/** The demo model calls the tool and ends. If it must go on, the server reports its text as a malformed call. */
const tools: PeerCase = {
  ...CHAT,
  name: 'tools',
  streams: 16,
  tokens: { '60M': 64, demo: 256 },
  isCached: true,
  mayEnd: true,
  body: (index) => ({
    messages: [{ role: 'user', content: `What is the weather in ${CITIES[index % CITIES.length]}?` }],
    temperature: 0,
    tools: [WEATHER],
  }),
};

/** A text that the models repeat stands for edits and extractions; scripts/bench/engine/drafts.ts uses the same. */
const copy: PeerCase = {
  name: 'a text that repeats',
  path: '/v1/completions',
  isCached: true,
  mayEnd: false,
  streams: 1,
  tokens: { '60M': 256, demo: 256 },
  body: () => ({ prompt: 'a b c d e f g h '.repeat(20), temperature: 0 }),
};

const NO_ARGS = { '60M': [], demo: [] };

/**
 * The fastest of ten settings of the peer's prompt lookup (drafts copied from the prompt) for each model.
 *
 * Without `ngram-mod`, whose table outlives a request: in a bench that repeats a request, it would replay the answer.
 */
const PROMPT_LOOKUP = {
  '60M': '--spec-type ngram-map-k --spec-ngram-map-k-size-n 12 --spec-ngram-map-k-size-m 48 --spec-draft-n-max 48'.split(' '),
  demo: '--spec-type ngram-simple --spec-ngram-simple-size-n 3 --spec-ngram-simple-size-m 8 --spec-draft-n-max 8'.split(' '),
};

/** Each case has as many streams as slots. With more slots, the peer would use some that are not adjacent, which llama.cpp batches apart. */
export const SETUPS: readonly Setup[] = [
  { slots: 1, contextSize: 2048, peerArgs: NO_ARGS, cases: [greedy(1, { '60M': 192, demo: 256 }), prompts(1)] },
  { slots: 4, contextSize: 2048, peerArgs: NO_ARGS, cases: [greedy(4, { '60M': 128, demo: 256 }), prompts(4)] },
  { slots: 16, contextSize: 1024, peerArgs: NO_ARGS, cases: [greedy(16, { '60M': 64, demo: 256 }), sampled, schema, tools] },
  { slots: 32, contextSize: 512, peerArgs: NO_ARGS, cases: [greedy(32, { '60M': 48, demo: 256 })] },
  { slots: 1, contextSize: 1024, peerArgs: PROMPT_LOOKUP, cases: [copy] },
];

export interface Measured {
  readonly tokensPerSecond: number;
  /** Processor time of all processes of the program, in microseconds. */
  readonly cpuPerToken: number;
  /** Median of the answers. */
  readonly firstTokenMs: number;
}

/** Adjacent measurements of both programs. */
export interface Round {
  readonly peer: Measured;
  readonly agent: Measured;
}

/** Ratios of the agent to the server. */
export interface Verdict {
  readonly tokensPerSecond: number;
  readonly cpuPerToken: number;
  readonly firstTokenMs: number;
  readonly isMet: boolean;
}

/** Compares adjacent rounds and takes the medians of their ratios, because the machine's other load varies. */
export function judge(rounds: readonly Round[]): Verdict {
  const ratio = (member: keyof Measured) => median(rounds.map(({ peer, agent }) => agent[member] / peer[member]));
  const tokensPerSecond = ratio('tokensPerSecond');
  const firstTokenMs = ratio('firstTokenMs');
  return { tokensPerSecond, cpuPerToken: ratio('cpuPerToken'), firstTokenMs, isMet: tokensPerSecond >= 1 && firstTokenMs <= 1 };
}
