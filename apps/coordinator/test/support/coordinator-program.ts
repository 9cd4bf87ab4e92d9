/** Starts the built coordinator program as a child process, for tests that attack it over HTTP and WebSocket. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { DATABASE_PARENT } from './database-directory.js';
import { until } from './harness.js';

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

export interface CoordinatorProgram {
  readonly url: string;
  readonly apiKey: string;
  readonly adminKey: string;
  readonly pid: number;
  readonly dataDir: string;
  /** Log lines so far. */
  log(): Record<string, unknown>[];
  /** Value of a metric, with labels in its name: `inference_x{state="y"}`. Returns 0 if the metric is absent. */
  metric(name: string): Promise<number>;
  close(): Promise<void>;
}

/** Starts the program in development mode on a port of the system's choosing. */
export async function startProgram(env: Record<string, string> = {}): Promise<CoordinatorProgram> {
  const dataDir = temporaryDirectory('coordinator-attacked', DATABASE_PARENT);
  const child: ChildProcess = spawn(process.execPath, [MAIN], {
    env: { PATH: process.env.PATH, PORT: '0', DATA_DIR: dataDir, DEVELOPMENT: '1', ALLOW_SIMULATED_ENCLAVE: '1', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  let out = '';
  child.stdout?.on('data', (data) => {
    out += String(data);
  });
  const log = (): Record<string, unknown>[] =>
    out
      .slice(0, out.lastIndexOf('\n') + 1)
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));
  await until(() => log().some(({ msg }) => msg === 'listening'));
  const url = String(log().find(({ msg }) => msg === 'listening')?.address);
  const keys = JSON.parse(readFileSync(join(dataDir, 'coordinator', 'development-keys.json'), 'utf8'));
  return {
    url,
    apiKey: keys.api_key,
    adminKey: keys.admin_key,
    pid: child.pid ?? 0,
    dataDir,
    log,
    async metric(name) {
      const text = await (await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${keys.admin_key}` } })).text();
      const line = text.split('\n').find((one) => one.startsWith(`${name} `));
      return line === undefined ? 0 : Number(line.slice(name.length + 1));
    },
    async close() {
      child.kill('SIGKILL');
      await ended;
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}
