/** Rendering bench: time that turning the engine's tokens into responses of each API format adds, with eight concurrent streams. */
import { formatFor, type TextEndpoint } from '@inference/formats';
import type { Engine } from '../../../apps/provider/src/engine/engine.js';
import { answerText } from '../../../apps/provider/src/jobs/answer/answer-text.js';
import { generationRequest } from '../../../apps/provider/src/jobs/answer/generation-request.js';
import { startDemoEngine } from '../../../apps/provider/test/demo-model.js';
import { sized } from '../size.js';
import { cpuSeconds, median } from '../statistics.js';

const STREAMS = 8;
const ROUNDS = sized(5, 1);
/** Consecutive responses per stream in one measurement. */
const ANSWERS = sized(3, 1);
const MAX_TOKENS = 200;
/** Maximum added time, as a share of the engine's time per token. */
const TARGET = 0.05;
const THINK_TAGS = { open: '<think>', close: '</think>' };

/** Microseconds per token. */
interface Measured {
  /** Wall time. */
  readonly wallUs: number;
  /** CPU time of the engine's process, or wall time where CPU time is unavailable. */
  readonly engineUs: number;
  /** CPU time of this process. */
  readonly ownUs: number;
}

/** Generates one response, and resolves to its number of tokens. */
type Serve = (engine: Engine, index: number) => Promise<number>;

const bodies: Readonly<Record<string, (text: string) => Record<string, unknown>>> = {
  '/v1/chat/completions': (text) => ({ messages: [{ role: 'user', content: text }], max_tokens: MAX_TOKENS }),
  '/v1/responses': (text) => ({ input: text, max_output_tokens: MAX_TOKENS }),
  '/v1/messages': (text) => ({ messages: [{ role: 'user', content: text }], max_tokens: MAX_TOKENS }),
};

/** Resolves to whether the target was met in every format. */
export async function benchRendering(): Promise<boolean> {
  const engine = await startDemoEngine(STREAMS, {}, 1024);
  try {
    let met = true;
    for (const endpoint of Object.keys(bodies)) met = (await compare(engine, endpoint as TextEndpoint)) && met;
    return met;
  } finally {
    await engine.close();
  }
}

async function compare(engine: Engine, endpoint: TextEndpoint): Promise<boolean> {
  const read: Measured[] = [];
  const rendered: Measured[] = [];
  const [asItComes, inFormat] = [reader(endpoint), renderer(endpoint)];
  // Warm-up: the first responses run uncompiled code.
  for (const serve of [asItComes, inFormat, inFormat]) await measure(engine, serve);
  for (let round = 0; round < ROUNDS; round++) {
    // The order alternates, so that a slowing machine affects both sides alike.
    const turns: [Serve, Measured[]][] = [
      [asItComes, read],
      [inFormat, rendered],
    ];
    for (const [serve, results] of round % 2 === 0 ? turns : turns.reverse()) results.push(await measure(engine, serve));
  }
  const engineUs = median(read.map((one) => one.engineUs));
  // Compares adjacent rounds, because other load on the machine varies.
  const wall = median(rendered.map(({ wallUs }, round) => wallUs / (read[round] as Measured).wallUs)) - 1;
  const added = median(rendered.map(({ ownUs }, round) => ownUs - (read[round] as Measured).ownUs));
  const met = wall <= TARGET && added / engineUs <= TARGET;
  console.log(
    `${endpoint.padEnd(20)} ${STREAMS} streams: the engine takes ${engineUs.toFixed(0)} us of processor for a token; rendering adds ` +
      `${added.toFixed(1)} us (${percent(added / engineUs)}), and ${percent(wall)} on the clock; target ${percent(TARGET)}: ${met ? 'met' : 'MISSED'}`,
  );
  return met;
}

async function measure(engine: Engine, serve: Serve): Promise<Measured> {
  const own = process.cpuUsage();
  const engineSeconds = cpuSeconds(engine.pid as number);
  const begin = performance.now();
  const counts = await Promise.all(
    Array.from({ length: STREAMS }, async (_, stream) => {
      let count = 0;
      for (let index = 0; index < ANSWERS; index++) count += await serve(engine, ANSWERS * stream + index);
      return count;
    }),
  );
  const wallUs = (performance.now() - begin) * 1000;
  const { user, system } = process.cpuUsage(own);
  const tokens = counts.reduce((sum, count) => sum + count, 0);
  if (tokens < STREAMS * ANSWERS * 20) throw new Error(`only ${tokens} tokens came: the streams are too short to measure`);
  const engineUs = (cpuSeconds(engine.pid as number) - engineSeconds) * 1e6;
  return { wallUs: wallUs / tokens, engineUs: (Number.isNaN(engineUs) ? wallUs : engineUs) / tokens, ownUs: (user + system) / tokens };
}

/** Greedy sampling, so that both modes see the same tokens. */
function parsedRequest(endpoint: TextEndpoint, index: number) {
  const body = bodies[endpoint]?.(`Tell me a story about Mia and ${index} friends.`);
  const bytes = new TextEncoder().encode(JSON.stringify({ model: 'demo', temperature: 0, stream: true, ...body }));
  return { ...formatFor(endpoint).parse(bytes), constraint: null };
}

/** Only reads the engine's tokens. */
function reader(endpoint: TextEndpoint): Serve {
  return async (engine, index) => {
    let tokens = 0;
    for await (const batch of engine.generate(
      generationRequest(parsedRequest(endpoint, index).request, { maxTokens: MAX_TOKENS, cacheScope: null }, null),
    )) {
      for (const piece of batch) tokens += piece.tokens;
    }
    return tokens;
  };
}

/** Renders the tokens as the agent does, without sending. */
function renderer(endpoint: TextEndpoint): Serve {
  return async (engine, index) => {
    const { usage } = await answerText({
      parsed: parsedRequest(endpoint, index),
      responseMetadata: { responseId: `resp_${index}`, created: 1_800_000_000, model: 'demo' },
      maxTokens: MAX_TOKENS,
      cacheScope: null,
      thinkTags: THINK_TAGS,
      thinks: true,
      maxImageTokens: null,
      requestBytes: 1000,
      generate: (request) => engine.generate(request),
      write: async () => {},
      pingAfterMs: 10_000,
      closing: new AbortController().signal,
      signal: new AbortController().signal,
    });
    return usage.completion_tokens;
  };
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}
