/** The public model catalogue: prices, measured performance and uptime of the models that are served now. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { generate, IMAGE_MODEL, imageProvider } from '../../images/pictures.js';
import { type Harness, MODEL, startHarness } from '../../support/harness.js';
import { untilDayLasts } from '../../support/midnight.js';
import type { ScriptedJob } from '../../support/scripted-provider.js';

interface Listed {
  readonly id: string;
  readonly pricing: Readonly<Record<string, string>>;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly statistics: {
    readonly first_token_ms: { readonly p5: number; readonly p50: number; readonly p95: number; readonly requests: number } | null;
    readonly tokens_per_second: { readonly p50: number; readonly requests: number } | null;
    readonly duration_ms: { readonly p50: number; readonly requests: number } | null;
    readonly uptime: {
      readonly share: number;
      readonly checks: number;
      readonly days: readonly { readonly share: number | null }[];
    } | null;
  };
}

/** Enough tokens for a speed measurement. */
const WORDS = Array.from({ length: 20 }, (_, index) => ` word${index}`);

describe('the public model catalogue', () => {
  let harness: Harness;
  let clockShift = 0;

  beforeEach(async () => {
    clockShift = 0;
    harness = await startHarness({ now: () => Date.now() + clockShift, availabilityCheckMs: 20 });
  });
  afterEach(() => harness.close());

  /** Reads the catalogue without an API key and never from the cache. */
  async function listed(): Promise<Listed[]> {
    // Each call moves the clock by more than a minute, forth or back. Either change invalidates the cache.
    clockShift = clockShift === 0 ? 61_000 : 0;
    const response = await harness.get('/v1/network/models', null);
    expect(response.status).toBe(200);
    expect(response.headers.get('access-control-allow-origin')).toBe('*');
    return ((await response.json()) as { data: Listed[] }).data;
  }
  const entryOf = async (id: string): Promise<Listed | undefined> => (await listed()).find((model) => model.id === id);

  /** Requests a stream. The client reads its first part before the job ends, which makes the speed measurable. */
  async function stream(jobs: readonly ScriptedJob[]): Promise<void> {
    const response = await harness.chat({ stream: true });
    expect(response.status).toBe(200);
    const reader = response.body?.getReader();
    await reader?.read();
    const job = jobs.at(-1);
    job?.push(job.render(WORDS).at(-1) ?? new Uint8Array());
    job?.push(new Uint8Array(), true);
    job?.complete();
    while ((await reader?.read())?.done === false);
  }

  it('is empty without machines', async () => {
    expect(await listed()).toEqual([]);
  });

  it('lists the models of the model list, without measurements', async () => {
    await harness.provider();
    const { data } = (await (await harness.get('/v1/models')).json()) as { data: object[] };
    const [entry] = await listed();
    expect(entry).toMatchObject({ ...data[0], metadata: { provider_count: 1, hardware_providers: 0, trust_level: 'self_signed' } });
    expect(entry?.statistics).toMatchObject({ first_token_ms: null, tokens_per_second: null, duration_ms: null });
  });

  it('measures streamed answers from request to first token, and their speed', async () => {
    const jobs: ScriptedJob[] = [];
    await harness.provider({
      onJob: (job) => {
        jobs.push(job);
        job.beginStream(WORDS);
      },
    });
    await stream(jobs);
    await stream(jobs);
    const statistics = (await entryOf(MODEL))?.statistics;
    expect(statistics?.first_token_ms?.requests).toBe(2);
    expect(statistics?.tokens_per_second?.requests).toBe(2);
    expect(statistics?.tokens_per_second?.p50).toBeGreaterThan(0);
    const { p5 = 0, p50 = 0, p95 = 0 } = statistics?.first_token_ms ?? {};
    expect(p5).toBeGreaterThan(0);
    expect(p50).toBeGreaterThanOrEqual(p5);
    expect(p95).toBeGreaterThanOrEqual(p50);
    expect(statistics?.duration_ms).toBeNull();
  });

  it('measures no text that arrived at once, and no failed answer', async () => {
    await harness.provider({ onJob: (job) => job.answerHonestly(WORDS) });
    expect((await harness.chat()).status).toBe(200);
    expect((await harness.chat({ model: 'unknown', stream: true })).status).toBe(404);
    expect((await entryOf(MODEL))?.statistics.first_token_ms).toBeNull();
  });

  it('measures images by their duration', async () => {
    await imageProvider(harness);
    expect((await generate(harness)).status).toBe(200);
    const statistics = (await entryOf(IMAGE_MODEL))?.statistics;
    expect(statistics).toMatchObject({ first_token_ms: null, tokens_per_second: null, duration_ms: { requests: 1 } });
  });

  it('shows a new price at once', async () => {
    await harness.provider();
    expect((await entryOf(MODEL))?.pricing.prompt).toBe('0.00000005');
    const response = await fetch(`${harness.url}/admin/v1/prices/${MODEL}`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${harness.adminKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ prompt_per_million: 70_000, cached_per_million: 10_000, completion_per_million: 300_000, per_image: 0 }),
    });
    expect(response.status).toBe(200);
    const again = (await (await harness.get('/v1/network/models', null)).json()) as { data: Listed[] };
    expect(again.data[0]?.pricing).toMatchObject({ prompt: '0.00000007', input_cache_read: '0.00000001', completion: '0.0000003' });
  });

  it('has the uptime from the periodic checks, also while a model is away', async () => {
    // Each `listed` shifts the clock by about a minute; the shifted times must be of the same day.
    await untilDayLasts(90_000);
    const provider = await harness.provider();
    await harness.until(async () => ((await entryOf(MODEL))?.statistics.uptime?.checks ?? 0) >= 2);
    expect((await entryOf(MODEL))?.statistics.uptime?.share).toBe(1);
    provider.close();
    await harness.until(async () => (await listed()).length === 0);
    const checks = async (): Promise<number> => {
      const row = await harness.app.database
        .selectFrom('model_availability')
        .select((select) => select.fn.sum<number>('checks').as('checks'))
        .where('model', '=', '')
        .executeTakeFirst();
      return Number(row?.checks ?? 0);
    };
    const before = await checks();
    await harness.until(async () => (await checks()) > before + 1);
    clockShift = 0;
    await harness.provider();
    await harness.until(async () => (await entryOf(MODEL)) !== undefined);
    const uptime = (await entryOf(MODEL))?.statistics.uptime;
    expect(uptime?.share).toBeLessThan(1);
    expect(uptime?.share).toBeGreaterThan(0);
    expect(uptime?.days).toHaveLength(30);
    expect(uptime?.days.at(-1)?.share).toBe(uptime?.share);
  });
});
