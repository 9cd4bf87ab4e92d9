/** Sends fuzzed requests and collects faulty responses. */

import { SeededRandom } from '../seeded-random.js';
import { type FuzzedPath, PATHS } from './bodies.js';
import { bodiesFor, exchange, fuzzRequest, type Target } from './exchange.js';
import { faultsOf } from './verdict.js';

export interface FuzzResult {
  /** One line per fault, with the seed that reproduces the request. */
  readonly faults: readonly string[];
  /** Answers by status; 0: the server hung up. */
  readonly statuses: ReadonlyMap<number, number>;
}

export interface FuzzOptions extends Target {
  readonly firstSeed: number;
  readonly cases: number;
  /** Default: all. */
  readonly paths?: readonly FuzzedPath[];
  /** Requests in flight. */
  readonly concurrency?: number;
}

/** Each case has its own seed: `firstSeed`, `firstSeed + 1` and so on. */
export async function fuzz({ firstSeed, cases, paths, concurrency = 4, ...target }: FuzzOptions): Promise<FuzzResult> {
  const faults: string[] = [];
  const statuses = new Map<number, number>();
  let next = firstSeed;
  const worker = async (): Promise<void> => {
    while (next < firstSeed + cases) {
      const seed = next++;
      const request = fuzzRequest(target, new SeededRandom(seed), paths);
      const { answer, faults: found } = await evaluate(request, target);
      statuses.set(answer, (statuses.get(answer) ?? 0) + 1);
      for (const fault of found) faults.push(`seed ${seed}, ${request.path}: ${fault}`);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  return { faults, statuses };
}

async function evaluate(request: ReturnType<typeof fuzzRequest>, target: Target): Promise<{ answer: number; faults: string[] }> {
  try {
    const answer = await exchange(target.baseUrl, request.bytes);
    return { answer: answer?.status ?? 0, faults: faultsOf(request, answer, target) };
  } catch (error) {
    return { answer: 0, faults: [error instanceof Error ? error.message : String(error)] };
  }
}

/** Statuses of one valid request per body that the models can serve. */
export async function sendValidRequests(target: Target, paths: readonly FuzzedPath[] = PATHS): Promise<number[]> {
  const statuses: number[] = [];
  for (const path of paths) {
    if (path === '/v1/embeddings' && target.embeddingModel === undefined) continue;
    for (const body of bodiesFor(path, target)) {
      const response = await fetch(`${target.baseUrl}${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${target.apiKey}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      await response.arrayBuffer();
      statuses.push(response.status);
    }
  }
  return statuses;
}
