/** Runs a seeded mix of an SDK's requests in end-to-end mode. Some sealed requests fail, so that the SDK retries. */
import { createVerifiedFetch, type E2eVerdict, memoryStore, verdictOf } from '@inference/client';
import { SeededRandom } from '../seeded-random.js';
import { ANTHROPIC_REQUESTS } from './anthropic-requests.js';
import { LANGCHAIN_REQUESTS } from './langchain-requests.js';
import { OPENAI_REQUESTS } from './openai-requests.js';
import type { Models, RequestKind } from './sdk-request.js';
import { VERCEL_REQUESTS } from './vercel-requests.js';

export const SDKS = {
  openai: OPENAI_REQUESTS,
  anthropic: ANTHROPIC_REQUESTS,
  vercel: VERCEL_REQUESTS,
  langchain: LANGCHAIN_REQUESTS,
} as const satisfies Record<string, readonly RequestKind[]>;
export type SdkName = keyof typeof SDKS;
export const SDK_NAMES = Object.keys(SDKS) as SdkName[];

/** Maximum refused requests, below the coordinator's limit of free refusals per key and hour. */
const MAX_PROVIDER_REFUSALS = 20;
const AT_ONCE = 6;
/** Probability that a sealed request fails on its way. */
const FAILURE_RATE = 0.04;

export interface MixOptions {
  readonly sdk: SdkName;
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly models: Models;
  readonly canary: string;
  readonly count: number;
  readonly seed: number;
}

export type Verified = Extract<E2eVerdict, { state: 'verified' }>;

export interface MixOutcome {
  /** Verdicts of the complete responses. Tools and turns need several for one request. */
  readonly verified: readonly Verified[];
  /** Streams that the caller cancelled. */
  readonly leftCount: number;
  /** Requests with an injected failure, which the SDK retried. */
  readonly injectedCount: number;
  readonly endpoints: ReadonlySet<string>;
  /** Unexpected outcomes, one line each. */
  readonly problems: readonly string[];
}

/** Sends `count` requests, each kind of the SDK at least once. */
export async function runMix({ sdk, baseUrl, apiKey, models, canary, count, seed }: MixOptions): Promise<MixOutcome> {
  const random = new SeededRandom(seed);
  const failures = new FailingTransport(new SeededRandom(seed + 1));
  const fetch = createVerifiedFetch({ baseURL: baseUrl, policy: { allowSimulated: true }, store: memoryStore(), fetch: failures.fetch });
  const verified: Verified[] = [];
  const problems: string[] = [];
  let leftCount = 0;
  let coordinatorErrors = 0;

  const send = async (kind: RequestKind, index: number): Promise<void> => {
    const responses: Response[] = [];
    const observed: typeof globalThis.fetch = async (input, init) => {
      const response = await fetch(input as string | URL | Request, init);
      responses.push(response);
      return response;
    };
    try {
      await kind.run({ baseUrl, apiKey, models, canary, fetch: observed, index, random: new SeededRandom(seed * 10_000 + index) });
    } catch (error) {
      problems.push(`${kind.name}: ${error instanceof Error ? error.message : String(error)}`);
    }
    const verdicts = responses.map((response) => verdictOf(response));
    const repeated = verdicts.filter((verdict) => verdict?.state === 'refused' && verdict.refusal.code === 'coordinator_said');
    coordinatorErrors += repeated.length;
    for (const verdict of verdicts.filter((other) => !repeated.includes(other))) {
      if (verdict?.state === 'verified') verified.push(verdict);
      else if (verdict?.state === 'refused' && verdict.refusal.code === 'truncated' && kind.ends === 'refused') leftCount++;
      else problems.push(`${kind.name}: ${verdict?.state} ${verdict?.state === 'refused' ? verdict.refusal.message : ''}`);
    }
    const last = verdicts.at(-1);
    if (last?.state !== (kind.ends ?? 'verified')) problems.push(`${kind.name}: ends as ${last?.state}`);
    const isRefusal = last?.state === 'verified' && last.receipt.finish_reason === 'refused';
    if (isRefusal !== (kind.isProviderRefusal ?? false)) problems.push(`${kind.name}: refused by the provider: ${isRefusal}`);
  };

  const order = mixOf(SDKS[sdk], count, random);
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < order.length) {
      const index = next++;
      await send(order[index] as RequestKind, index);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  if (coordinatorErrors !== failures.errorCount)
    problems.push(`${coordinatorErrors} errors of the coordinator, ${failures.errorCount} injected`);
  const endpoints = new Set(verified.map(({ receipt }) => receipt.endpoint));
  return { verified, leftCount, injectedCount: failures.errorCount + failures.brokenCount, endpoints, problems };
}

/** Receipts of billed requests. Omits token counting, which is free. */
export function paidIn(verified: readonly Verified[]) {
  return verified.flatMap(({ receipt: { job_id, usage, endpoint } }) =>
    usage === undefined || endpoint === '/v1/messages/count_tokens' ? [] : [{ job_id, usage }],
  );
}

/** Each kind once, the rest by weight, in random order. */
function mixOf(kinds: readonly RequestKind[], count: number, random: SeededRandom): RequestKind[] {
  const mix = [...kinds];
  const deck = kinds.flatMap((kind) => Array.from({ length: kind.weight }, () => kind));
  let refusals = 1;
  while (mix.length < count) {
    const kind = random.pick(deck);
    if (kind.isProviderRefusal && ++refusals > MAX_PROVIDER_REFUSALS) continue;
    mix.push(kind);
  }
  return mix
    .map((kind) => ({ kind, key: random.next() }))
    .sort((a, b) => a.key - b.key)
    .map(({ kind }) => kind);
}

/** Fails some sealed requests before they are sent: with an error of a coordinator, or with a broken connection. */
class FailingTransport {
  errorCount = 0;
  brokenCount = 0;
  readonly #random: SeededRandom;

  constructor(random: SeededRandom) {
    this.#random = random;
  }

  readonly fetch = (input: string, init: RequestInit): Promise<Response> => {
    if (init.method !== 'POST' || !this.#random.happens(FAILURE_RATE)) return globalThis.fetch(input, init);
    if (this.#random.happens(0.5)) {
      this.brokenCount++;
      // The error of `fetch` on a broken connection; SDKs inspect its cause.
      return Promise.reject(new TypeError('fetch failed', { cause: Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }) }));
    }
    this.errorCount++;
    return Promise.resolve(Response.json({ error: { message: 'Busy.' } }, { status: 503, headers: { 'retry-after': '0.01' } }));
  };
}
