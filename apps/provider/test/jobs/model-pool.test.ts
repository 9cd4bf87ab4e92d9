/** Several models that share a machine's memory: loaded on request, unloaded when unused, disabled when failing. */
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { Engine, type EngineStatusEvent } from '../../src/engine/engine.js';
import { GenerationError } from '../../src/engine/generation.js';
import type { KeepAlive } from '../../src/jobs/serving/keep-alive.js';
import { ModelPool, ModelUnavailable } from '../../src/jobs/serving/model-pool.js';
import type { ModelEvent, RunningEngine, Serving, ServingTimings, StartEngine } from '../../src/jobs/serving/served-model.js';
import { planCapacity } from '../../src/models/capacity.js';
import { readModelFacts } from '../../src/models/model-facts.js';
import { ask, collect, demoModel } from '../demo-model.js';

const demo = readModelFacts(demoModel());
const never = new AbortController().signal;
const onDemand: KeepAlive = { kind: 'on_demand' };
const always: KeepAlive = { kind: 'always' };

function serving(id: string, need: number, keep: KeepAlive = { kind: 'idle', minutes: 30 }): Serving {
  return { facts: { ...demo, id }, capacity: { slots: 2, contextSize: 512 }, need, keep, fileSha256: () => null };
}

/** Engines that become ready on command. */
class Bench {
  readonly events: ModelEvent[] = [];
  readonly starts: { readonly id: string; readonly ready: () => void; readonly fail: (error: Error) => void }[] = [];
  readonly running = new Set<string>();
  /** Peak of memory in use. */
  peak = 0;
  readonly #told: (() => void)[] = [];
  readonly models: ModelPool;

  constructor(
    readonly list: readonly Serving[],
    readonly ceiling: number,
    timings: Partial<ServingTimings> = {},
  ) {
    const start: StartEngine = (model, _onEvent, signal) =>
      new Promise((resolve, reject) => {
        signal.addEventListener('abort', () => reject(new Error('interrupted')), { once: true });
        this.running.add(model.id);
        const engine: RunningEngine = {
          facts: model.serving.capacity,
          pid: 1,
          generate: () => {
            throw new Error('not scripted');
          },
          embed: () => {
            throw new Error('not scripted');
          },
          close: async () => {
            await delay(1);
            this.running.delete(model.id);
          },
        };
        const fail = (error: Error): void => {
          this.running.delete(model.id);
          reject(error);
        };
        this.starts.push({ id: model.id, ready: () => resolve(engine), fail });
        this.#wake();
      });
    this.models = new ModelPool({
      models: list,
      ceiling,
      start,
      onEvent: (event) => this.events.push(event),
      onChange: () => {
        this.peak = Math.max(this.peak, this.models.memoryInUse);
        this.#wake();
      },
      timings,
    });
  }

  states(): Record<string, string> {
    return Object.fromEntries([...this.models.all()].map(({ id, state }) => [id, state]));
  }

  /** Waits for something to become true, looking whenever anything changes. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await new Promise<void>((resolve) => this.#told.push(resolve));
  }

  async started(id: string) {
    await this.until(() => this.starts.some((start) => start.id === id));
    return this.starts.splice(
      this.starts.findIndex((start) => start.id === id),
      1,
    )[0] as (typeof this.starts)[number];
  }

  /** Starts the pool, whose model with keep-alive always becomes ready. */
  async open(id: string): Promise<void> {
    const starting = this.models.start(never);
    (await this.started(id)).ready();
    await starting;
  }

  /** Leases a cold model, which becomes ready. */
  async load(id: string) {
    const lease = this.models.lease(id, never);
    (await this.started(id)).ready();
    return lease;
  }

  #wake(): void {
    for (const wake of this.#told.splice(0)) wake();
  }
}

let bench: Bench;
afterEach(() => bench.models.close());

describe('loading', () => {
  test('a job loads its model, reported with state and expected time', async () => {
    bench = new Bench([serving('a', 5)], 10);
    await bench.models.start(never);
    expect(bench.models.offers()).toMatchObject([{ id: 'a', state: 'on_demand', load_ms: expect.any(Number) }]);
    const lease = bench.models.lease('a', never);
    const start = await bench.started('a');
    expect(bench.models.offers()).toMatchObject([{ state: 'loading', load_ms: expect.any(Number) }]);
    start.ready();
    expect((await lease).model.id).toBe('a');
    expect(bench.models.offers()[0]).toMatchObject({ state: 'ready' });
    expect(bench.models.offers()[0]).not.toHaveProperty('load_ms');
  });

  test('models with keep-alive always are loaded at the start, and jobs share them', async () => {
    bench = new Bench([serving('a', 5, always), serving('b', 5)], 10);
    await bench.open('a');
    await Promise.all([bench.models.lease('a', never), bench.models.lease('a', never)]);
    expect(bench.states()).toEqual({ a: 'ready', b: 'cold' });
    expect(bench.starts).toHaveLength(0);
  });

  test('a start fails with the reason when nothing can be loaded, and continues when something can', async () => {
    bench = new Bench([serving('a', 5, always)], 10);
    const failing = bench.models.start(never);
    (await bench.started('a')).fail(new Error('no such layer'));
    await expect(failing).rejects.toThrow('no such layer');
    await bench.models.close();

    bench = new Bench([serving('a', 5, always), serving('b', 5)], 10);
    const going = bench.models.start(never);
    (await bench.started('a')).fail(new Error('no such layer'));
    await going;
    expect(bench.models.offers().map(({ id }) => id)).toEqual(['b']);
    expect([...bench.models.all()][0]?.reason).toBe('no such layer');
  });

  test('a job cancelled while its model loads leaves no lease', async () => {
    bench = new Bench([serving('a', 5)], 10, { idleMs: 5 });
    const leaving = new AbortController();
    const lease = bench.models.lease('a', leaving.signal);
    const start = await bench.started('a');
    leaving.abort(new Error('gone'));
    await expect(lease).rejects.toThrow('gone');
    start.ready();
    await bench.until(() => bench.events.some(({ type }) => type === 'unloaded'));
    expect(bench.running.size).toBe(0);
  });

  test('a model that is not served is refused', async () => {
    bench = new Bench([serving('a', 5)], 10);
    await expect(bench.models.lease('other', never)).rejects.toThrow(ModelUnavailable);
  });
});

describe('memory', () => {
  test('unused models are unloaded, least recently used first; the ceiling is never exceeded', async () => {
    bench = new Bench([serving('a', 4), serving('b', 4), serving('c', 4)], 9);
    for (const id of ['a', 'b']) {
      (await bench.load(id)).release();
    }
    (await bench.models.lease('a', never)).release();
    await bench.load('c');
    expect(bench.states()).toEqual({ a: 'ready', b: 'cold', c: 'ready' });
    expect(bench.peak).toBeLessThanOrEqual(9);
  });

  test('a job waits for a model in use, and after a while newer jobs of that model wait behind', async () => {
    bench = new Bench([serving('a', 6), serving('b', 6)], 9, { priorityAfterMs: 1 });
    const held = await bench.load('a');
    const b = bench.models.lease('b', never);
    await delay(20);
    let granted = false;
    const newer = bench.models.lease('a', never).then((lease) => {
      granted = true;
      return lease;
    });
    await delay(5);
    expect(granted).toBe(false);
    held.release();
    (await bench.started('b')).ready();
    (await b).release();
    (await bench.started('a')).ready();
    (await newer).release();
    expect(bench.peak).toBeLessThanOrEqual(9);
  });

  test('while memory is short, unused models are unloaded at once, except those with keep-alive always', async () => {
    bench = new Bench([serving('a', 3, always), serving('b', 3), serving('c', 3)], 9);
    await bench.open('a');
    const lease = async (id: string) => {
      const leasing = bench.models.lease(id, never);
      (await bench.started(id)).ready();
      return await leasing;
    };
    const held = await lease('b');
    (await lease('c')).release();
    expect(bench.states()).toEqual({ a: 'ready', b: 'ready', c: 'ready' });
    bench.models.setMemoryIsShort(true);
    await bench.until(() => bench.states().c === 'cold');
    expect(bench.states()).toEqual({ a: 'ready', b: 'ready', c: 'cold' });
    held.release();
    await bench.until(() => bench.states().b === 'cold');
    // A request is served all the same, and later the model may stay again.
    const again = await lease('c');
    bench.models.setMemoryIsShort(false);
    again.release();
    expect(bench.states()).toEqual({ a: 'ready', b: 'cold', c: 'ready' });
  });

  test('a job that waits too long for memory is refused, and no model is unloaded in vain', async () => {
    bench = new Bench([serving('a', 6), serving('b', 2), serving('c', 8)], 9, { priorityAfterMs: 1, memoryWaitMs: 20 });
    for (const id of ['a', 'b']) {
      const held = await bench.load(id);
      if (id === 'b') held.release();
    }
    await expect(bench.models.lease('c', never)).rejects.toMatchObject({ reason: 'no_room' });
    expect(bench.states()).toEqual({ a: 'ready', b: 'ready', c: 'cold' });
  });

  test('an unused model is unloaded after its idle time, and still offered', async () => {
    bench = new Bench([serving('a', 4, onDemand), serving('b', 4, always)], 9, { idleMs: 5 });
    await bench.open('b');
    (await bench.load('a')).release();
    await bench.until(() => bench.states().a === 'cold');
    expect(bench.states()).toEqual({ a: 'cold', b: 'ready' });
    expect(bench.models.offers().map(({ id, state }) => [id, state])).toEqual([
      ['a', 'on_demand'],
      ['b', 'ready'],
    ]);
  });
});

test('a model that cannot be loaded is disabled with the reason, and retried with growing pauses', async () => {
  bench = new Bench([serving('a', 4)], 9, { firstDisabledMs: 10 });
  const lease = bench.models.lease('a', never);
  (await bench.started('a')).fail(new Error('the file is damaged'));
  await expect(lease).rejects.toMatchObject({ reason: 'disabled' });
  expect(bench.models.offers()).toEqual([]);
  await bench.until(() => bench.models.offers().length === 1);
  const again = bench.models.lease('a', never);
  (await bench.started('a')).fail(new Error('the file is damaged'));
  await expect(again).rejects.toMatchObject({ reason: 'disabled' });
  const aside = bench.events.flatMap((event) => (event.type === 'disabled' ? [event] : []));
  expect(aside.map(({ reason, retryInMs }) => [reason, retryInMs])).toEqual([
    ['the file is damaged', 10],
    ['the file is damaged', 20],
  ]);
});

test('a killed process fails only its jobs; killed repeatedly, its model is disabled, and others continue', async () => {
  const events: ModelEvent[] = [];
  let changed: () => void = () => {};
  const start: StartEngine = ({ serving: { capacity } }, onEvent: (event: EngineStatusEvent) => void, signal) =>
    Engine.start(
      {
        settings: { modelPath: demoModel(), ...capacity, gpu: 'none' },
        firstRetryMs: 5,
        giveUpAfter: { deaths: 2, withinMs: 60_000 },
        onEvent,
      },
      signal,
    );
  const capacity = { ...planCapacity(demo, { slots: 2, context: 512, budget: 1e9 }) };
  const models = new ModelPool({
    models: ['a', 'b'].map((id) => ({ ...serving(id, 5, always), capacity })),
    ceiling: 10,
    start,
    onEvent: (event) => events.push(event),
    onChange: () => changed(),
  });
  const until = async (holds: () => boolean): Promise<void> => {
    while (!holds()) await new Promise<void>((resolve) => (changed = resolve));
  };
  try {
    await models.start(never);
    const [a, b] = [await models.lease('a', never), await models.lease('b', never)];
    const running = a.model.generate(ask('Count from 1 to 9.', 400, { presencePenalty: -2, frequencyPenalty: -2 }));
    const other = collect(b.model.generate(ask('What is the capital of France?')));
    for await (const _ of running) process.kill(a.model.pid ?? 0, 'SIGKILL');
    expect(() => running.outcome()).toThrow(GenerationError);
    expect((await other).text).toContain('Paris');
    a.release();
    // The model is retried by itself, and a job that came meanwhile waits for the model.
    const after = await models.lease('a', never);
    expect((await collect(after.model.generate(ask('What is the capital of France?')))).text).toContain('Paris');
    expect(models.offers().map(({ state }) => state)).toEqual(['ready', 'ready']);

    process.kill(after.model.pid ?? 0, 'SIGKILL');
    await until(() => after.model.state === 'disabled');
    after.release();
    expect(models.offers().map(({ id }) => id)).toEqual(['b']);
    expect(after.model.reason).toMatch(/again and again.*SIGKILL/);
    await expect(models.lease('a', never)).rejects.toMatchObject({ reason: 'disabled' });
    expect(events.filter(({ type }) => type === 'died' || type === 'disabled').map(({ type, id }) => [type, id])).toEqual([
      ['died', 'a'],
      ['disabled', 'a'],
    ]);
    expect((await collect(b.model.generate(ask('What is the capital of France?')))).text).toContain('Paris');
  } finally {
    await models.close();
  }
});

describe('a suspended pool', () => {
  test('unloads every model, refuses jobs, and reloads models with keep-alive always after resume', async () => {
    bench = new Bench([serving('a', 5, always), serving('b', 5)], 10);
    await bench.open('a');
    (await bench.load('b')).release();
    await bench.models.suspend();
    expect([bench.states(), bench.running.size, bench.models.memoryInUse]).toEqual([{ a: 'cold', b: 'cold' }, 0, 0]);
    expect(bench.models.offers()).toMatchObject([{ state: 'on_demand' }, { state: 'on_demand' }]);
    await expect(bench.models.lease('b', never)).rejects.toEqual(new ModelUnavailable('suspended'));
    bench.models.resume();
    (await bench.started('a')).ready();
    await bench.until(() => bench.states().a === 'ready');
    expect(bench.states()).toEqual({ a: 'ready', b: 'cold' });
  });

  test('waits for a process that is already ending', async () => {
    bench = new Bench([serving('a', 5)], 10);
    (await bench.load('a')).release();
    void bench.models.model('a')?.unload();
    await bench.models.suspend();
    expect([bench.states(), bench.running.size]).toEqual([{ a: 'cold' }, 0]);
  });

  test('interrupts loading and refuses waiting jobs', async () => {
    bench = new Bench([serving('a', 5)], 10);
    await bench.models.start(never);
    const waiting = expect(bench.models.lease('a', never)).rejects.toEqual(new ModelUnavailable('suspended'));
    await bench.started('a');
    await bench.models.suspend();
    await waiting;
    expect(bench.states()).toEqual({ a: 'cold' });
    // An interruption does not count against the model.
    expect(bench.events.map(({ type }) => type)).toEqual(['loading']);
    bench.models.resume();
    expect((await bench.load('a')).model.state).toBe('ready');
  });

  test('loads nothing at the start, and unloads a model that is still loading', async () => {
    bench = new Bench([serving('a', 5, always)], 10);
    await bench.models.suspend();
    await bench.models.start(never);
    expect([bench.states(), bench.starts]).toEqual([{ a: 'cold' }, []]);
    bench.models.resume();
    const start = await bench.started('a');
    start.ready();
    await bench.models.suspend();
    expect([bench.states(), bench.running.size]).toEqual([{ a: 'cold' }, 0]);
  });
});

describe('changes by the owner at run time', () => {
  const minutes = (count: number): KeepAlive => ({ kind: 'idle', minutes: count });
  async function bothReady(ceiling: number): Promise<void> {
    bench = new Bench([serving('a', 5, always), serving('b', 4, minutes(30))], ceiling);
    await bench.open('a');
    (await bench.load('b')).release();
    expect(bench.states()).toEqual({ a: 'ready', b: 'ready' });
  }

  test('keep-alive: a model set to always is loaded, another is unloaded after its idle time', async () => {
    await bothReady(10);
    expect(bench.models.adjust(new Map([['b', onDemand]]), 10)).toEqual([]);
    expect(bench.models.model('b')?.keep).toEqual(onDemand);
    await bench.models.model('b')?.unload();
    bench.models.adjust(new Map([['b', always]]), 10);
    (await bench.started('b')).ready();
    await bench.until(() => bench.states().b === 'ready');
  });

  test('less memory: unused models are unloaded at once, and models that do not fit are neither offered nor loaded', async () => {
    await bothReady(10);
    expect(bench.models.adjust(new Map(), 7).map(({ id }) => id)).toEqual(['b']);
    await bench.until(() => bench.states().b === 'cold');
    expect(bench.models.offers().map(({ id }) => id)).toEqual(['a']);
    await expect(bench.models.lease('b', never)).rejects.toEqual(new ModelUnavailable('no_room'));
    expect(bench.models.adjust(new Map(), 3).map(({ id }) => id)).toEqual(['a', 'b']);
    await bench.until(() => bench.states().a === 'cold');
    expect([bench.models.offers(), bench.running.size]).toEqual([[], 0]);
    // And back: the model with keep-alive `always` is loaded.
    expect(bench.models.adjust(new Map(), 10)).toEqual([]);
    (await bench.started('a')).ready();
    await bench.until(() => bench.states().a === 'ready');
    expect(bench.models.offers().map(({ id }) => id)).toEqual(['a', 'b']);
  });

  test('less memory while a model works: its job finishes first', async () => {
    await bothReady(10);
    const lease = await bench.models.lease('b', never);
    bench.models.adjust(new Map(), 7);
    expect(bench.states().b).toBe('ready');
    lease.release();
    await bench.until(() => bench.states().b === 'cold');
  });

  test('memory for each but not for all: the unused model is unloaded', async () => {
    bench = new Bench([serving('a', 5), serving('b', 4)], 10);
    await bench.models.start(never);
    for (const id of ['a', 'b']) {
      (await bench.load(id)).release();
    }
    expect(bench.models.adjust(new Map(), 8)).toEqual([]);
    await bench.until(() => bench.models.memoryInUse <= 8);
    expect(bench.models.offers()).toHaveLength(2);
  });
});

describe('another list of models', () => {
  test('models on both lists continue; a removed one ends with its last job and frees its memory', async () => {
    bench = new Bench([serving('stays', 3, always), serving('leaves', 6, always)], 10);
    const starting = bench.models.start(never);
    (await bench.started('stays')).ready();
    (await bench.started('leaves')).ready();
    await starting;
    const held = await bench.models.lease('leaves', never);
    const { model } = await bench.models.lease('stays', never);

    expect(bench.models.replace([serving('stays', 3, always), serving('comes', 7, always)], 10)).toEqual([]);
    expect(bench.models.offers().map(({ id }) => id)).toEqual(['stays', 'comes']);
    await expect(bench.models.lease('leaves', never)).rejects.toMatchObject({ reason: 'not_served' });
    // Its job continues in its process, whose memory is still occupied.
    expect([held.model.state, bench.running.has('leaves'), bench.starts.length]).toEqual(['ready', true, 0]);
    held.release();
    (await bench.started('comes')).ready();
    expect((await bench.models.lease('comes', never)).model.id).toBe('comes');
    expect(bench.running).toEqual(new Set(['stays', 'comes']));
    expect(bench.models.model('stays')).toBe(model);
    expect(bench.peak).toBeLessThanOrEqual(10);
  });

  test('a model removed while it unloads occupies memory until its process has ended', async () => {
    bench = new Bench([serving('leaves', 6)], 10);
    (await bench.load('leaves')).release();
    void bench.models.model('leaves')?.unload();
    bench.models.replace([serving('comes', 7)], 10);
    const lease = bench.models.lease('comes', never);
    const start = await bench.started('comes');
    expect(bench.running).toEqual(new Set(['comes']));
    start.ready();
    (await lease).release();
    expect(bench.peak).toBeLessThanOrEqual(10);
  });

  test('closing waits for a process that is already ending', async () => {
    bench = new Bench([serving('a', 6)], 10);
    (await bench.load('a')).release();
    void bench.models.model('a')?.unload();
    await bench.models.close();
    expect(bench.running.size).toBe(0);
  });

  test('a replanned model replaces itself, and waiting jobs wait for the successor', async () => {
    bench = new Bench([serving('a', 6)], 10);
    const lease = bench.models.lease('a', never);
    const old = await bench.started('a');
    bench.models.replace([serving('a', 5)], 10);
    const fresh = await bench.started('a');
    old.ready();
    fresh.ready();
    expect((await lease).model.serving.need).toBe(5);
    await bench.until(() => bench.models.memoryInUse === 5);
    expect(bench.peak).toBeLessThanOrEqual(10);
  });

  test('a new keep-alive leaves the process running; an idle model is unloaded after the new time', async () => {
    bench = new Bench([serving('a', 5, always)], 10, { idleMs: 5 });
    await bench.open('a');
    bench.models.replace([serving('a', 5, onDemand)], 10);
    await bench.until(() => bench.states().a === 'cold');
    expect(bench.events.map(({ type }) => type)).toEqual(['loading', 'ready', 'unloaded']);
  });

  test('a model added to a suspended pool is loaded afterwards', async () => {
    bench = new Bench([serving('a', 5, always)], 10);
    await bench.open('a');
    await bench.models.suspend();
    bench.models.replace([serving('b', 5, always)], 10);
    expect(bench.starts).toEqual([]);
    bench.models.resume();
    (await bench.started('b')).ready();
    await bench.until(() => bench.states().b === 'ready');
  });
});
