/** Metrics as a Prometheus server reads them: values follow real traffic, in a format that an independent parser accepts. */
import parse from 'parse-prometheus-text-format';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BoundedLabels, Metrics, OTHER } from '../../src/telemetry/metrics.js';
import { type Harness, MODEL, startHarness } from '../support/harness.js';

const CHAT = '/v1/chat/completions';

let harness: Harness;
beforeAll(async () => {
  harness = await startHarness({ config: { metrics: { host: '127.0.0.1', port: 0 } } });
});
afterAll(() => harness.close());

/** Sum of a family's samples with these labels. For a histogram: its count, which the parser only returns without labels. */
function sumOf(text: string, name: string, labels: Readonly<Record<string, string>> = {}): number {
  const family = parse(text).find((one) => one.name === name);
  if (family === undefined) throw new Error(`there is no ${name}`);
  return family.metrics
    .filter((sample) => Object.entries(labels).every(([label, value]) => sample.labels?.[label] === value))
    .reduce((sum, sample) => sum + Number(sample.value ?? sample.count), 0);
}

async function read(): Promise<string> {
  const response = await harness.get('/metrics', harness.adminKey);
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
  return response.text();
}

describe('metrics', () => {
  it('need an admin key', async () => {
    expect((await harness.get('/metrics', null)).status).toBe(401);
    expect((await harness.get('/metrics')).status).toBe(403);
  });

  it('have their own port if configured, which serves nothing else', async () => {
    const url = `http://127.0.0.1:${harness.app.metricsPort}`;
    const response = await fetch(`${url}/metrics`);
    expect(parse(await response.text()).map(({ name }) => name)).toContain('inference_jobs_total');
    expect((await fetch(`${url}/v1/models`)).status).toBe(404);
    expect((await fetch(`${url}/metrics`, { method: 'POST' })).status).toBe(404);
  });

  it('follow delivered, failed, retried and cancelled jobs', async () => {
    const failing = await harness.provider({ onJob: (job) => job.fail({ code: 'engine_failed' }) });
    const before = await read();
    expect((await harness.chat()).status).toBe(502);
    failing.close();
    await harness.until(() => harness.app.providers.connections === 0);
    await harness.provider();
    expect((await harness.chat()).status).toBe(200);
    await (await harness.chat({ stream: true })).text();
    const after = await read();
    const moved = (name: string, labels: Readonly<Record<string, string>> = {}): number =>
      sumOf(after, name, labels) - sumOf(before, name, labels);
    expect(moved('inference_jobs_total', { endpoint: CHAT, stream: 'false', end: 'delivered' })).toBe(1);
    expect(moved('inference_jobs_total', { endpoint: CHAT, stream: 'true', end: 'delivered' })).toBe(1);
    expect(moved('inference_jobs_total', { end: 'provider_failed' })).toBe(1);
    expect(moved('inference_failed_attempts_total', { reason: 'engine_failed' })).toBe(1);
    expect(moved('inference_first_token_seconds')).toBe(1);
    expect(moved('inference_relay_seconds')).toBeGreaterThanOrEqual(1);
    expect(after).toContain(`inference_job_seconds_count{endpoint="${CHAT}",stream="false"} 2`);
    expect(moved('inference_placements_total')).toBeGreaterThanOrEqual(3);
    expect(moved('inference_queue_wait_seconds')).toBe(moved('inference_placements_total'));
    expect(moved('inference_bytes_total', { direction: 'response' })).toBeGreaterThan(100);
    expect(moved('inference_tokens_total', { model: MODEL, kind: 'completion' })).toBeGreaterThan(0);
    expect(moved('inference_ledger_steps_total', { step: 'settle', outcome: 'settled' })).toBe(2);
    expect(moved('inference_ledger_steps_total', { step: 'release', outcome: 'released' })).toBe(1);
    expect(after).toContain('inference_ledger_step_seconds_count{step="reserve"} 3');
    expect(moved('inference_provider_sessions_total', { event: 'left', code: 'closed' })).toBe(1);
    expect(sumOf(after, 'inference_providers', { trust_level: 'self_signed', status: 'online' })).toBe(1);
    expect(sumOf(after, 'inference_provider_trust_parts', { part: 'challenge', state: 'ok' })).toBe(1);
    expect(sumOf(after, 'inference_queue_length')).toBe(0);
    expect(sumOf(after, 'nodejs_eventloop_lag_p99_seconds')).toBeGreaterThanOrEqual(0);
    expect(sumOf(after, 'process_resident_memory_bytes')).toBeGreaterThan(1_000_000);
  });

  it('count a client that disconnects, with the progress of its stream', async () => {
    const provider = await harness.provider({ models: ['test/long'], onJob: (job) => job.beginStream(['one', ' two']) });
    const gone = new AbortController();
    const response = await harness.chat({ model: 'test/long', stream: true }, { signal: gone.signal });
    await response.body?.getReader().read();
    gone.abort();
    await harness.until(async () => sumOf(await read(), 'inference_cancels_total', { stage: 'after_content' }) === 1);
    provider.close();
  });

  it('name no more models than their maximum', () => {
    const names = new BoundedLabels(2);
    expect(['a', 'b', 'c', 'a', 'd'].map((name) => names.name(name))).toEqual(['a', 'b', OTHER, 'a', OTHER]);
  });

  it('escape a model name chosen by a provider', async () => {
    const metrics = new Metrics();
    const model = 'a"b\\c\nd';
    const job = {
      endpoint: CHAT,
      isSealed: false,
      stream: true,
      outcome: 'delivered',
      cancelled: null,
      ms: 1,
      requestBytes: 1,
      responseBytes: 1,
      times: null,
    } as const;
    metrics.job({ ...job, billed: { model, promptTokens: 3, completionTokens: 4 } });
    const { text } = await metrics.read();
    expect(sumOf(text, 'inference_tokens_total')).toBe(7);
    expect(text).toContain('model="a\\"b\\\\c\\nd"');
  });
});
