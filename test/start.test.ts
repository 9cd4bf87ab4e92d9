/** A newcomer's first steps: `npm start`, the printed curl, Ctrl-C; and the error messages on problems. */
import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeEach, describe, expect, it } from 'vitest';
import { NpmStart, ROOT, scriptCommand } from './support/npm-start.js';
import { processTable } from './support/processes.js';
import { runProgram } from './support/program.js';
import { temporaryDirectory } from './support/temporary-directory.js';

const run = promisify(execFile);
const DEMO_MODEL = join(ROOT, 'apps/provider/demo-models/pico/pico.gguf');

let directory: string;
beforeEach(() => {
  directory = temporaryDirectory('inference-start');
});

/** Processes with the test's directory as working directory. */
function left(): string[] {
  return processTable()
    .filter((row) => row.command.includes(directory))
    .map((row) => row.command);
}

/** Two networks start and end in one test. */
const TWO_NETWORKS_MS = 300_000;

describe('npm start', () => {
  it('answers the printed curl, ends everything on Ctrl-C, and comes back with the same data', { timeout: TWO_NETWORKS_MS }, async () => {
    const first = new NpmStart(directory, { PROVIDERS: '2' });
    const demo = await first.ready();
    expect(demo).toEqual({
      base_url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      api_key: expect.stringMatching(/^service-.{32,}$/),
      admin_key: expect.stringMatching(/^service-.{32,}$/),
      text_model: expect.any(String),
      image_model: 'picto',
      vision_model: 'viso-demo',
    });
    expect(statSync(join(directory, 'demo.json')).mode & 0o777).toBe(0o600);
    const curl = /( {2}curl [\s\S]*?')\n\n/.exec(first.output)?.[1];
    expect(curl).toBeDefined();
    const { stdout } = await run('bash', ['-c', `${curl} --silent --show-error`]);
    expect(JSON.parse(stdout)).toMatchObject({ choices: [{ message: { content: expect.stringContaining('Paris') } }] });
    const verify = /^Verify an answer with curl and openssl: {2}(.*)$/m.exec(first.output)?.[1] ?? '';
    expect((await run('bash', ['-c', verify], { cwd: ROOT })).stdout).toMatch(/^verified$/m);
    const consoleAddress = /^ {2}console {2}(\S+)$/m.exec(first.output)?.[1] ?? '';
    const page = await fetch(consoleAddress, { headers: { accept: 'text/html' } });
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
    const script = /<script type="module"[^>]* src="([^"]+)"/.exec(await page.text())?.[1] ?? '';
    expect((await fetch(new URL(script, consoleAddress))).headers.get('content-type')).toMatch(/javascript/);

    const second = new NpmStart(directory);
    expect(await second.exited).toBe(1);
    expect(second.output).toMatch(/running already/);

    const names = first.descendants().map((row) => row.command);
    expect(names.filter((command) => command.includes('coordinator/dist/main.js'))).toHaveLength(1);
    expect(names.filter((command) => command.includes('provider/dist/main.js'))).toHaveLength(2);
    expect(await first.end('SIGINT')).toEqual({ code: 0, left: [] });
    await expect.poll(left, { timeout: 5_000 }).toEqual([]);

    const again = new NpmStart(directory);
    expect(await again.ready()).toMatchObject({ api_key: demo.api_key, admin_key: demo.admin_key });
    expect(await again.end('SIGTERM')).toMatchObject({ left: [] });
  });

  it('ends everything also when it is killed outright', async () => {
    const start = new NpmStart(directory);
    await start.ready();
    const launcher = start.descendants().find((row) => row.command.includes('scripts/start.ts'));
    const pids = start.descendants().map((row) => row.pid);
    process.kill(launcher?.pid as number, 'SIGKILL');
    await start.exited;
    await expect.poll(() => processTable().filter((row) => pids.includes(row.pid) && !/defunct/.test(row.command))).toEqual([]);
  });

  it('serves another GGUF when MODEL_PATH names one', async () => {
    const model = join(directory, 'my-own-model.gguf');
    await runProgram('scripts/make-model.ts', ['--preset', 'tiny', '--out', model]);
    const start = new NpmStart(join(directory, 'data'), { MODEL_PATH: model });
    const demo = await start.ready();
    const response = await fetch(`${demo.base_url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${demo.api_key}` },
      body: JSON.stringify({ model: demo.text_model, messages: [{ role: 'user', content: 'Hello' }], max_tokens: 8 }),
    });
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ usage: { completion_tokens: expect.any(Number) } });
    await start.end();
  });
});

describe('npm start says what is wrong and leaves nothing running when', () => {
  async function failing(env: Record<string, string>, dataDir = join(directory, 'data')): Promise<string> {
    const start = new NpmStart(dataDir, env, scriptCommand('scripts/start.ts'));
    expect(await start.exited).toBe(1);
    expect(start.hasDemoFile()).toBe(false);
    await expect.poll(left, { timeout: 5_000 }).toEqual([]);
    expect(start.output).not.toMatch(/^\s+at /m);
    return start.output;
  }

  it('the port is taken', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as { port: number };
    expect(await failing({ PORT: String(port) })).toMatch(new RegExp(`${port}.*the port is taken`));
    server.close();
  });

  it('the data directory cannot be written', async () => {
    expect(await failing({}, '/proc/no-such-place')).toMatch(/data directory.*cannot be used/);
    const file = join(directory, 'a-file');
    writeFileSync(file, '');
    expect(await failing({}, file)).toMatch(/data directory.*cannot be used/);
  });

  it('the model file is missing or damaged', async () => {
    expect(await failing({ MODEL_PATH: join(directory, 'none.gguf') })).toMatch(/there is no file/);
    const cut = join(directory, 'cut.gguf');
    copyFileSync(DEMO_MODEL, cut);
    truncateSync(cut, 1_000_000);
    expect(await failing({ MODEL_PATH: cut })).toMatch(/cut\.gguf.*(damaged|truncated|incomplete|cut off)/i);
  });

  it('a setting is wrong', async () => {
    expect(await failing({ PORT: '80a' })).toMatch(/PORT must be a whole number/);
    expect(await failing({ PROVIDERS: '0' })).toMatch(/PROVIDERS must be/);
  });

  it('the database is damaged', async () => {
    const dataDir = join(directory, 'data');
    mkdirSync(join(dataDir, 'coordinator'), { recursive: true });
    writeFileSync(
      join(dataDir, 'coordinator', 'coordinator.db'),
      'this is no database, and it is long enough to be read as one'.repeat(100),
    );
    expect(await failing({}, dataDir)).toMatch(/database|store/i);
  });
});
