/** Traces: off by default, enabled by the standard variables, exported to a collector, and never with content. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { addressOf, listenLocally } from '../../../../test/support/local-server.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { StartupError } from '../../src/config/startup-error.js';
import { readTracing } from '../../src/telemetry/tracing-settings.js';
import { MODEL, until } from '../support/harness.js';
import { ScriptedProvider } from '../support/scripted-provider.js';

describe('the standard variables', () => {
  const otlp = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };
  it.each([
    [{}, null],
    [otlp, { protocol: 'http/protobuf' }],
    [{ OTEL_TRACES_EXPORTER: 'otlp' }, { protocol: 'http/protobuf' }],
    [{ ...otlp, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' }, { protocol: 'http/json' }],
    [
      { ...otlp, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json', OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/protobuf' },
      { protocol: 'http/protobuf' },
    ],
    [{ ...otlp, OTEL_SDK_DISABLED: 'true' }, null],
    [{ ...otlp, OTEL_TRACES_EXPORTER: 'none' }, null],
    [{ OTEL_SERVICE_NAME: 'named' }, null],
  ])('%j give %j', (env, settings) => expect(readTracing(env)).toEqual(settings));

  it.each([{ ...otlp, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, { OTEL_TRACES_EXPORTER: 'zipkin' }])('%j are refused by name', (env) => {
    expect(() => readTracing(env)).toThrow(StartupError);
    expect(() => readTracing(env)).toThrow(/OTEL_/);
  });
});

interface SentSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly attributes: readonly { readonly key: string; readonly value: Record<string, unknown> }[];
  readonly status: { readonly code?: number; readonly message?: string };
}

describe('a running coordinator', () => {
  const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
  const CANARY = 'canary-of-the-prompt';
  const cleanUp: (() => unknown)[] = [];
  afterEach(async () => {
    for (const step of cleanUp.splice(0).reverse()) await step();
  });

  /** A collector that accepts all exports. */
  async function startCollector() {
    const bodies: Buffer[] = [];
    const headers: IncomingHttpHeaders[] = [];
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        headers.push(request.headers);
        bodies.push(Buffer.concat(chunks));
        response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
      });
    });
    await listenLocally(server);
    cleanUp.push(() => {
      server.closeAllConnections();
      server.close();
    });
    return { bodies, headers, url: addressOf(server) };
  }

  async function startCoordinator(env: Record<string, string>) {
    const dataDir = temporaryDirectory('coordinator-traces');
    const child: ChildProcess = spawn(process.execPath, [main], {
      env: {
        PATH: process.env.PATH,
        PORT: '0',
        DATA_DIR: dataDir,
        DEVELOPMENT: '1',
        ALLOW_SIMULATED_ENCLAVE: '1',
        HEDGE_PERCENT: '0',
        ...env,
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const exit = new Promise<number | null>((resolve) => child.on('close', resolve));
    cleanUp.push(async () => {
      child.kill('SIGKILL');
      await exit;
    });
    let log = '';
    child.stdout?.on('data', (data) => {
      log += String(data);
    });
    await until(() => log.includes('"listening"'));
    const address = (JSON.parse(log.split('\n').find((line) => line.includes('"listening"')) ?? '{}') as { address: string }).address;
    const key = (JSON.parse(readFileSync(join(dataDir, 'coordinator', 'development-keys.json'), 'utf8')) as { api_key: string }).api_key;
    const chat = (headers: Record<string, string> = {}): Promise<Response> =>
      fetch(`${address}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, ...headers },
        body: JSON.stringify({ model: MODEL, messages: [{ role: 'user', content: CANARY }] }),
      });
    return { address, key, chat, child, exit, log: () => log };
  }

  it("exports the spans of each request, with the client's trace, and no content, key or account", async () => {
    const collector = await startCollector();
    const coordinator = await startCoordinator({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_EXPORTER_OTLP_HEADERS: 'x-collector-token=secret',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment=test',
      OTEL_BSP_SCHEDULE_DELAY: '50',
    });
    const bad = await ScriptedProvider.connect(coordinator.address, {
      models: [MODEL],
      onJob: (job) => job.fail({ code: 'engine_failed' }),
    });
    cleanUp.push(() => bad.close());
    const traceId = '0af7651916cd43dd8448eb211c80319c';
    expect((await coordinator.chat({ traceparent: `00-${traceId}-b7ad6b7169203331-01` })).status).toBe(502);
    bad.close();
    await bad.closed;
    const good = await ScriptedProvider.connect(coordinator.address, { models: [MODEL], onJob: (job) => job.answerHonestly([CANARY]) });
    cleanUp.push(() => good.close());
    expect((await coordinator.chat()).status).toBe(200);
    coordinator.child.kill('SIGTERM');
    expect(await coordinator.exit).toBe(0);

    const requests = collector.bodies.map((body) => JSON.parse(body.toString()) as Record<string, never>);
    const resources = requests.flatMap(
      ({ resourceSpans }) => resourceSpans as unknown as { resource: unknown; scopeSpans: { spans: SentSpan[] }[] }[],
    );
    const spans = resources.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans));
    const roots = spans.filter(({ name }) => name === 'POST /v1/chat/completions');
    expect(roots).toHaveLength(2);
    const [failed, served] = [roots.find((root) => root.traceId === traceId), roots.find((root) => root.traceId !== traceId)];
    const partsOf = (root: SentSpan | undefined): string[] =>
      spans
        .filter(({ parentSpanId }) => parentSpanId === root?.spanId)
        .map(({ name }) => name)
        .sort();
    expect(failed).toMatchObject({ parentSpanId: 'b7ad6b7169203331', status: { code: 2, message: 'engine_failed' } });
    expect(partsOf(failed)).toEqual(expect.arrayContaining(['inference.attempt', 'inference.placement', 'inference.reservation']));
    expect(partsOf(failed)).not.toContain('inference.settlement');
    expect(partsOf(served)).toEqual(['inference.attempt', 'inference.placement', 'inference.reservation', 'inference.settlement']);
    const attempt = spans.find(({ name, parentSpanId }) => name === 'inference.attempt' && parentSpanId === served?.spanId);
    expect(Object.fromEntries(attempt?.attributes.map(({ key, value }) => [key, Object.values(value)[0]]) ?? [])).toEqual({
      'inference.role': 'first',
      'inference.provider_id': good.providerId,
      'inference.outcome': 'answered',
    });
    expect(JSON.stringify(resources[0]?.resource)).toMatch(
      /inference-coordinator.*deployment\.environment|deployment\.environment.*inference-coordinator/,
    );
    expect(collector.headers.every((headers) => headers['x-collector-token'] === 'secret')).toBe(true);
    const sent = collector.bodies.map(String).join('\n');
    for (const secret of [CANARY, coordinator.key]) expect(sent).not.toContain(secret);
  });

  it('exports protocol buffers by default, and serves without a reachable collector', async () => {
    const collector = await startCollector();
    const { chat, address, child, exit } = await startCoordinator({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_BSP_SCHEDULE_DELAY: '50',
    });
    const provider = await ScriptedProvider.connect(address, { models: [MODEL] });
    cleanUp.push(() => provider.close());
    expect((await chat()).status).toBe(200);
    // The spans of a slow request arrive in several batches.
    await until(() => collector.bodies.some((body) => body.includes('inference.placement')));
    expect(new Set(collector.headers.map((headers) => headers['content-type']))).toEqual(new Set(['application/x-protobuf']));
    child.kill('SIGTERM');
    expect(await exit).toBe(0);

    const away = await startCoordinator({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9', OTEL_BSP_SCHEDULE_DELAY: '50' });
    const other = await ScriptedProvider.connect(away.address, { models: [MODEL] });
    cleanUp.push(() => other.close());
    expect((await away.chat()).status).toBe(200);
    await until(() => away.log().includes('traces were not sent'));
    away.child.kill('SIGTERM');
    expect(await away.exit).toBe(0);
  });
});
