/** `models search` and `models recommend` against a model repository and a coordinator. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addressOf, closeServer, listenLocally } from '../../../../test/support/local-server.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { recommendationLines } from '../../src/cli/recommendation/recommendation-text.js';
import { recommendModels } from '../../src/cli/recommendation/recommendations.js';
import { ModelStore } from '../../src/models/store/model-store.js';
import { demoModel } from '../demo-model.js';
import { FileServer } from '../file-server.js';
import { MAIN } from '../support/owner-command.js';

const dataDir = temporaryDirectory('search');
const GB = 1e9;
let hub: FileServer;
/** Answers of the coordinator by path. */
const answers = new Map<string, unknown>();
const coordinator = createServer((request, response) => {
  const body = answers.get(request.url ?? '');
  response.writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json' }).end(JSON.stringify(body ?? {}));
});

function offer(repository: string, sizes: Readonly<Record<string, number>>, downloads: number, more: object = {}): void {
  for (const [quantization, bytes] of Object.entries(sizes)) {
    const path = `/${repository}/resolve/main/${repository.split('/')[1]}-${quantization}.gguf`;
    hub.put(path, Buffer.from(path));
    hub.reportedSizes.set(path, bytes);
  }
  hub.repositories.push({ id: repository, downloads, ...more });
}

beforeAll(async () => {
  hub = await FileServer.listen();
  await listenLocally(coordinator);
  offer('lab/Small-4B-GGUF', { Q4_K_M: 2.5 * GB, Q8_0: 4.3 * GB }, 900);
  offer('lab/Large-400B-GGUF', { Q4_K_M: 230 * GB }, 800);
  offer('lab/Wanted-8B-GGUF', { Q4_K_M: 5 * GB }, 10);
  offer('lab/Seeing-8B-GGUF', { Q4_K_M: 20 * GB }, 5);
  hub.put('/lab/Seeing-8B-GGUF/resolve/main/mmproj-F16.gguf', Buffer.from('projector'));
  offer('lab/Gated-4B-GGUF', { Q4_K_M: 2.5 * GB }, 700, { gated: 'manual' });
  offer('lab/Painter-GGUF', { Q4_0: 5 * GB }, 950, { pipeline_tag: 'text-to-image' });
});
afterAll(async () => {
  await hub.close();
  await closeServer(coordinator);
});

function run(...args: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    const env = { ...process.env, HF_ENDPOINT: hub.url };
    execFile(
      process.execPath,
      [MAIN, 'models', ...args, ...(args.includes('--data-dir') ? [] : ['--data-dir', dataDir])],
      { env },
      (error, stdout, stderr) => resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

describe('models search', () => {
  it('finds models that pull can download, and marks estimates', async () => {
    const { code, stdout } = await run('search', 'small');
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^hf:lab\/Small-4B-GGUF:(?:Q4_K_M|Q8_0) +\d\.\d GB/m)]);
    expect(stdout).not.toContain('Wanted');
    const { models } = JSON.parse((await run('search', '4b', '--json')).stdout);
    expect(models).toMatchObject([
      {
        repository: 'lab/Small-4B-GGUF',
        downloads: 900,
        gated: false,
        variants: [{ source: 'hf:lab/Small-4B-GGUF:Q4_K_M', bytes: 2.5 * GB }, {}],
      },
      { repository: 'lab/Gated-4B-GGUF', gated: true },
    ]);
  });

  it('says which models read images', async () => {
    const { stdout } = await run('search', 'seeing');
    expect(stdout).toMatch(/tokens\/s +vision +fits\n.* 20\.0 GB +\S+ +yes +/);
    expect(JSON.parse((await run('search', 'seeing', '--json')).stdout)).toMatchObject({ models: [{ variants: [{ vision: true }] }] });
  });

  it('leaves out models that the engines cannot run, and says when nothing matches', async () => {
    expect(await run('search', 'painter')).toMatchObject({ code: 1, stdout: 'No downloadable model matches "painter".\n' });
    expect(await run('search')).toMatchObject({ code: 2 });
    expect(await run('search', 'x', '--limit', '0')).toMatchObject({ code: 2, stderr: expect.stringContaining('--limit') });
  });
});

it('models pull says that it resumes an interrupted download', async () => {
  const pulled = temporaryDirectory('resume');
  const path = '/lab/Real-GGUF/resolve/main/Real-Q4_K_M.gguf';
  hub.put(path, readFileSync(demoModel()));
  const hasSent = new Promise<void>((resolve) => {
    hub.fault = (request, response, { body, etag }) => {
      if (request.headers.range === 'bytes=0-0') return false;
      const headers = { etag: etag ?? '', 'content-length': body.length, 'content-range': `bytes 0-${body.length - 1}/${body.length}` };
      response.writeHead(206, headers).write(body.subarray(0, 1_000_000), () => resolve());
      return true;
    };
  });
  const args = [MAIN, 'models', 'pull', 'hf:lab/Real-GGUF', '--data-dir', pulled];
  const child = spawn(process.execPath, args, { env: { ...process.env, HF_ENDPOINT: hub.url }, stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = once(child, 'close');
  await hasSent;
  const state = join(pulled, 'models', 'Real-Q4_K_M.gguf.part');
  while (!existsSync(state) || statSync(state).size < 1_000_000) await new Promise((resolve) => setImmediate(resolve));
  child.kill('SIGINT');
  expect((await ended)[0]).toBe(1);
  hub.fault = () => false;
  const { code, stdout } = await run('pull', 'hf:lab/Real-GGUF', '--data-dir', pulled);
  expect([code, stdout]).toEqual([0, expect.stringContaining('Resuming after 1.0 MB')]);
});

describe('recommendations', () => {
  const machine = {
    chip: 'Apple M2',
    memoryBytes: 16 * GB,
    bandwidthGbs: 100,
    slots: null,
    context: null,
    kvCacheType: 'f16',
    reserve: null,
  } as const;
  const recommend = (address: string | null = addressOf(coordinator)) =>
    recommendModels(
      { store: new ModelStore(join(dataDir, 'models')), coordinator: address, modelRepository: { url: hub.url, token: null } },
      machine,
    );
  const publish = (tokens: number): void => {
    answers.set('/v1/prices', { data: [{ model: 'wanted-8b', prompt_per_million: 50_000, completion_per_million: 200_000 }] });
    answers.set('/v1/stats', {
      total_prompt_tokens: 500,
      total_completion_tokens: 500,
      providers: [{ decode_tps: 14, tokens_generated: 400, models: ['wanted-8b'] }],
    });
    answers.set('/v1/network/totals?window=24h', { tokens });
  };

  it('holds fitting downloads only, and says that there is no demand data', async () => {
    for (const address of [null, addressOf(coordinator)]) {
      const { models, noDemand } = await recommend(address);
      expect(models.map(({ source, origin }) => [source, origin])).toEqual([
        ['hf:lab/Small-4B-GGUF:Q4_K_M', 'popular'],
        ['hf:lab/Wanted-8B-GGUF:Q4_K_M', 'popular'],
      ]);
      expect(models.every(({ earningsPerDay }) => earningsPerDay === null)).toBe(true);
      expect(noDemand).toMatch(address === null ? /no coordinator/ : /publishes no statistics/);
    }
    publish(0);
    const found = await recommend();
    expect(found.noDemand).toMatch(/served no requests/);
    expect(recommendationLines(found, machine).join(' ')).toContain('No demand data, so no estimated earnings');
  });

  it('puts the model in demand first, with earnings by prices and speed', async () => {
    publish(10_000_000);
    const found = await recommend();
    // Speeds are equal (14 tokens/s each): half of 10 million tokens at $0.125 per million.
    expect(found.models[0]).toEqual({
      source: 'hf:lab/Wanted-8B-GGUF:Q4_K_M',
      origin: 'demand',
      bytes: 5 * GB,
      tokensPerSecond: 14,
      vision: false,
      earningsPerDay: Math.round(Math.min(5_000_000, (14 * 86_400) / 0.5) * 0.125),
    });
    const lines = recommendationLines(found, machine);
    expect(lines.find((line) => line.startsWith('hf:lab/Wanted'))).toMatch(/5\.0 GB +~14 +- +~\$0\.30$/);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
  });

  it("recommends the operator's catalogue, in the quantization that it names", async () => {
    answers.set('/v1/catalogue', {
      data: [{ id: 'lab/Small-4B-GGUF:Q8_0', display_name: 'Small', quantization: '8bit', min_memory_bytes: null, file_sha256: [] }],
    });
    const { models } = await recommend();
    expect(models).toContainEqual(expect.objectContaining({ source: 'hf:lab/Small-4B-GGUF:Q8_0', origin: 'catalogue' }));
    expect(models.filter(({ source }) => source.includes('Small'))).toHaveLength(1);
  });

  it('survives a model repository that does not answer', async () => {
    const store = new ModelStore(join(dataDir, 'models'));
    const found = await recommendModels({ store, coordinator: null, modelRepository: { url: 'http://127.0.0.1:1', token: null } }, machine);
    expect(found).toMatchObject({ models: [], repositoryProblem: expect.stringContaining('cannot be reached') });
  });

  it('prints JSON', async () => {
    const { stdout } = await run('recommend', '--coordinator', addressOf(coordinator), '--json');
    expect(JSON.parse(stdout)).toMatchObject({ models: expect.any(Array), no_demand_data: expect.anything() });
  });
});
