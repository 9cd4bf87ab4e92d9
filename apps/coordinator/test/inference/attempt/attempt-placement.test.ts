import type { ProviderId } from '@inference/protocol';
import { NO_FILTER } from '@inference/scheduler';
import { afterEach, expect, it, vi } from 'vitest';
import { AttemptPlacement, type AttemptPlacementOptions } from '../../../src/inference/attempt/attempt-placement.js';
import type { ModelRun } from '../../../src/inference/model-run.js';
import type { Placement, SlotRequest } from '../../../src/inference/queue/request-queue.js';

afterEach(() => vi.restoreAllMocks());

const refusal = (reason: (Placement & { kind: 'refused' })['reason']): Placement => ({ kind: 'refused', reason, retryAfterMs: null });

/** Places a job with images whose client names `count` candidates. `alone` answers for each single candidate. */
async function placed(count: number, alone: (signal: AbortSignal) => Placement | Promise<Placement>) {
  const limit = new AbortController();
  const limits: number[] = [];
  vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => {
    limits.push(ms);
    return limit.signal;
  });
  const client = new AbortController();
  const asked: SlotRequest[] = [];
  const placements = {
    place: (request: SlotRequest, _waitMs: number, signal: AbortSignal): Placement | Promise<Placement> => {
      asked.push(request);
      return request.candidates?.size === 1 ? alone(signal) : refusal('no_such_serial');
    },
  };
  const placement = new AttemptPlacement({
    placements,
    registry: { placement: { unfitForImages: () => [] } },
    timings: { queueMs: 0 },
    now: () => 0,
    observer: { event: () => {} },
  } as unknown as AttemptPlacementOptions);
  const candidates = new Set(Array.from({ length: count }, (_, index) => index.toString(16).padStart(32, '0') as ProviderId));
  const running = {
    job: { images: null, params: { model: 'model' } },
    routing: null,
    slotRequest: { candidates, exclude: new Set(), filter: { ...NO_FILTER, images: 1 } },
    unfitProviders: new Set(),
    deadline: 60_000,
    clientSignal: client.signal,
    span: { child: () => ({ end: () => {} }) },
    attemptCount: 0,
    maxQueueMs: null,
  } as unknown as ModelRun;
  return { result: placement.place(running, false), asked, limit, limits, client };
}

it('finds that no candidate reads images', async () => {
  const { result, asked } = await placed(32, () => refusal('no_vision'));
  expect(await result).toEqual(refusal('no_vision'));
  expect(asked).toHaveLength(33);
});

/** A peer that never replies. */
const silent = (signal: AbortSignal): Promise<Placement> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve(refusal('aborted'))));

it('limits the total time of candidates at silent peers', async () => {
  const { result, asked, limit, limits } = await placed(32, silent);
  await vi.waitFor(() => expect(asked).toHaveLength(2));
  limit.abort();
  expect(await result).toEqual(refusal('no_such_serial'));
  expect(asked).toHaveLength(2);
  expect(limits).toEqual([2000]);
});

it('ends when the client disconnects', async () => {
  const { result, asked, client } = await placed(32, silent);
  await vi.waitFor(() => expect(asked).toHaveLength(2));
  client.abort();
  expect(await result).toEqual(refusal('aborted'));
});
