import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { MODEL, until } from '../support/harness.js';
import { ScriptedProvider } from '../support/scripted-provider.js';

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
let dataDir: string;
const children: ChildProcess[] = [];

beforeEach(() => {
  dataDir = temporaryDirectory('coordinator-process');
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

interface Running {
  readonly child: ChildProcess;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Exit code, or the signal that ended it. */
  readonly exit: Promise<number | string | null>;
}

function launch(env: Record<string, string>, args: readonly string[] = []): Running {
  const child = spawn(process.execPath, [main, ...args], {
    env: { PATH: process.env.PATH, PORT: '0', DATA_DIR: dataDir, DEVELOPMENT: '1', ALLOW_SIMULATED_ENCLAVE: '1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.push(child);
  let [out, err] = ['', ''];
  child.stdout?.on('data', (data) => {
    out += String(data);
  });
  child.stderr?.on('data', (data) => {
    err += String(data);
  });
  return {
    child,
    stdout: () => out,
    stderr: () => err,
    exit: new Promise((resolve) => child.on('close', (code, signal) => resolve(code ?? signal))),
  };
}

async function listening(running: Running): Promise<string> {
  await until(() => running.stdout().includes('"listening"'), 60_000);
  const line = running
    .stdout()
    .split('\n')
    .find((text) => text.includes('"listening"'));
  return (JSON.parse(line ?? '{}') as { address: string }).address;
}

function keys(): { api_key: string; admin_key: string } {
  return JSON.parse(readFileSync(join(dataDir, 'coordinator', 'development-keys.json'), 'utf8'));
}

function chat(address: string, stream: boolean): Promise<Response> {
  const body = JSON.stringify({ model: MODEL, stream, messages: [{ role: 'user', content: 'hi' }] });
  return fetch(`${address}/v1/chat/completions`, { method: 'POST', headers: { authorization: `Bearer ${keys().api_key}` }, body });
}

describe('a command line', () => {
  it('prints help and starts no server', async () => {
    const running = launch({}, ['serve', '--help']);
    expect(await running.exit).toBe(0);
    expect(running.stdout()).toMatch(/^Usage: inference-coordinator serve/);
    expect(running.stdout()).not.toContain('listening');
  });

  it('refuses unknown options and commands', async () => {
    const [option, command] = [launch({}, ['--port=8080']), launch({}, ['serv'])];
    expect([await option.exit, await command.exit]).toEqual([2, 2]);
    expect(option.stderr()).toContain("Unknown option '--port'.");
    expect(command.stderr()).toContain('There is no command "serv" (did you mean serve?).');
    expect([option.stdout(), command.stdout()]).toEqual(['', '']);
  });
});

describe('SIGTERM', () => {
  it('lets a running stream finish, tells providers, and exits with 0', async () => {
    const running = launch({});
    const address = await listening(running);
    let finish: () => void = () => {};
    const provider = await ScriptedProvider.connect(address, {
      models: [MODEL],
      onJob: (job) => {
        job.accept();
        const [first, ...rest] = job.render(['begin', ' end']);
        job.push(first ?? new Uint8Array());
        finish = () => {
          for (const part of rest) job.push(part);
          job.push(new Uint8Array(), true);
          job.complete();
        };
      },
    });
    const response = await chat(address, true);
    running.child.kill('SIGTERM');
    await until(() => running.stdout().includes('shutting down'));
    expect(provider.rejection).toBeUndefined();
    finish();
    expect((await response.text()).endsWith('data: [DONE]\n\n')).toBe(true);
    await provider.closed;
    expect(provider.rejection).toBe('shutting_down');
    expect(await running.exit).toBe(0);
  });

  it('ends a process whose log nobody reads any more', async () => {
    const running = launch({});
    const address = await listening(running);
    running.child.stdout?.destroy();
    running.child.kill('SIGTERM');
    expect(await running.exit).toBe(0);
    await expect(fetch(address)).rejects.toThrow();
  });

  it('ends a stream that does not finish within the time that is set', async () => {
    const running = launch({ DRAIN_SECONDS: '1' });
    const address = await listening(running);
    const provider = await ScriptedProvider.connect(address, {
      models: [MODEL],
      onJob: (job) => {
        job.accept();
        job.push(Buffer.from('data: {}\n\n'));
      },
    });
    const response = await chat(address, true);
    running.child.kill('SIGINT');
    const text = await response.text();
    expect(text).toContain('shutting_down');
    expect(text).not.toContain('[DONE]');
    expect(await running.exit).toBe(0);
    await provider.closed;
    expect(provider.rejection).toBe('shutting_down');
  });
});

describe('a second start', () => {
  it('reuses the development keys, replaces revoked keys, and keeps the file private', async () => {
    const first = launch({});
    await listening(first);
    const made = keys();
    const file = join(dataDir, 'coordinator', 'development-keys.json');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(made.api_key).toMatch(/^service-[A-Za-z0-9_-]{43}$/);
    first.child.kill('SIGTERM');
    await first.exit;
    chmodSync(file, 0o644);
    const second = launch({});
    const address = await listening(second);
    expect(keys()).toEqual(made);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect((await fetch(`${address}/v1/models`, { headers: { 'x-api-key': made.api_key } })).status).toBe(200);
  });
});

describe('a start that fails says why in one sentence', () => {
  it('when the port is taken', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const running = launch({ PORT: String(port) });
    expect(await running.exit).toBe(1);
    expect(running.stderr()).toBe(`The coordinator cannot listen on 127.0.0.1:${port}: the port is taken.\n`);
    server.close();
  });

  it('when the data directory cannot be used', async () => {
    const file = join(dataDir, 'file');
    writeFileSync(file, '');
    const running = launch({ DATA_DIR: file });
    expect(await running.exit).toBe(1);
    expect(running.stderr()).toMatch(/^The database .*coordinator\.db cannot be opened: [A-Z]+\.\n$/);
  });

  it('when a value is wrong, with exit code 2', async () => {
    for (const [name, value] of [
      ['PORT', '99999'],
      ['DEVELOPMENT', 'maybe'],
      ['LOG_LEVEL', 'loud'],
    ]) {
      const running = launch({ [name as string]: value as string });
      expect(await running.exit).toBe(2);
      expect(running.stderr()).toMatch(new RegExp(`^${name} must be .*not "${value}"\\.\\n$`));
    }
    expect(existsSync(join(dataDir, 'coordinator'))).toBe(false);
  });
});
