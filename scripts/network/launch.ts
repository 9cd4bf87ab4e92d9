/** Common part of `npm start` and `npm run cluster`: builds the packages, and runs a network until a signal or a failure. */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeDirectory } from './directory.js';
import { ROOT } from './network.js';
import { StartError } from './start-error.js';

const VISION_MODEL = join(ROOT, 'apps/provider/demo-models/viso/viso.gguf');

/** Agent arguments for the demo models. An agent loads the first model at start and the others on demand (`modelChoices`). */
export const DEMO_MODEL_ARGS = ['demo-text', 'demo-image', ...(existsSync(VISION_MODEL) ? ['demo-vision'] : [])].flatMap((model) => [
  '--model',
  model,
]);

export interface StartControl {
  readonly signal: AbortSignal;
  /** To be called with a line for the user, such as a restart of a process. */
  readonly onNotice: (text: string) => void;
  /** To be called after a failure, when the supervised processes have stopped. `launch` then calls `stop` for the rest. */
  readonly onFailure: (reason: string) => void;
}

interface LaunchOptions<Network> {
  readonly dataDir: string;
  readonly start: (control: StartControl) => Promise<Network>;
  readonly onReady: (network: Network) => void;
}

/**
 * Locks the data directory, builds, and runs a network. Resolves to the exit code: 0 after a signal, 1 if the running network failed.
 *
 * Rejects if the lock, the build, the start or the stop fails.
 */
export async function launch<Network extends { stop(): Promise<void> }>(options: LaunchOptions<Network>): Promise<number> {
  const unlock = lockDirectory(options.dataDir);
  try {
    return await run(options);
  } finally {
    unlock();
  }
}

async function run<Network extends { stop(): Promise<void> }>({ start, onReady }: LaunchOptions<Network>): Promise<number> {
  const stopping = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stopping.abort());
  console.log('Building and starting; this takes a few seconds.');
  build();

  let failed = false;
  let network: Network;
  try {
    network = await start({
      signal: stopping.signal,
      onNotice: (text) => console.error(text),
      onFailure: (reason) => {
        console.error(`The network stopped: ${reason}`);
        failed = true;
        stopping.abort();
      },
    });
  } catch (error) {
    if (stopping.signal.aborted && !failed) return 0;
    throw error;
  }
  onReady(network);
  if (!stopping.signal.aborted) await new Promise((resolve) => stopping.signal.addEventListener('abort', resolve));
  await network.stop();
  return failed ? 1 : 0;
}

/** Exits with the resolved code, or with 1 and a message after an error. */
export function exitWith(code: Promise<number>): void {
  void code
    .catch((error: unknown) => {
      console.error(error instanceof StartError ? `Not started: ${error.message}` : error);
      return 1;
    })
    .then((value) => process.exit(value));
}

/** File that only a full build of the coordinator writes. If the file exists, {@link build} runs full builds, not only bundles. */
const FULL_BUILD = join(ROOT, 'apps/coordinator/dist/.tsbuildinfo');

/**
 * Turbo tasks of a new checkout: they bundle each program that a network or a command of the README runs. Bundling skips type checks,
 * which take most of the time of a full build.
 */
const FIRST_START_TASKS = [
  '@inference/coordinator',
  'inference-provider',
  '@inference/console',
  '@inference/client',
  '@inference/device-simulation',
  '@inference/enclave',
  '@inference/verifier',
].map((name) => `${name}#bundle`);

/** Runs the build tasks whose outputs are missing or outdated. Throws {@link StartError} with the output of a failed build. */
function build(): void {
  const turbo = join(ROOT, 'node_modules/.bin/turbo');
  if (!existsSync(turbo)) throw new StartError('the dependencies are not installed: run npm ci first');
  const env = { ...process.env, TURBO_TELEMETRY_DISABLED: '1' };
  const tasks = existsSync(FULL_BUILD) ? ['build'] : FIRST_START_TASKS;
  const result = spawnSync(turbo, ['run', ...tasks, '--output-logs=errors-only'], { cwd: ROOT, encoding: 'utf8', env });
  if (result.status !== 0) throw new StartError(`the build failed:\n${result.stdout}${result.stderr}`);
}

/**
 * Creates and locks a directory, because two networks would share a database and enclave keys. Returns the unlock function. Throws
 * {@link StartError} if another network is running there.
 */
function lockDirectory(directory: string): () => void {
  const path = join(directory, 'start.pid');
  try {
    makeDirectory(directory);
    const holder = holderOf(path);
    if (holder !== null) throw new StartError(`a network with the data directory ${directory} is running already (process ${holder})`);
    rmSync(path, { force: true });
    writeFileSync(path, String(process.pid), { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if (error instanceof StartError) throw error;
    throw new StartError(`the data directory ${directory} cannot be used: ${(error as Error).message}`);
  }
  return () => rmSync(path, { force: true });
}

/** Id of the process that holds the lock. Null if the directory is free. */
function holderOf(path: string): number | null {
  let pid: number;
  try {
    pid = Number(readFileSync(path, 'utf8'));
  } catch {
    return null;
  }
  if (!Number.isInteger(pid) || pid <= 0 || pid === process.pid) return null;
  try {
    process.kill(pid, 0);
    return pid;
  } catch {
    return null;
  }
}
