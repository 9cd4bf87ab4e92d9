/** Common part of `npm start` and `npm run cluster`: builds the packages, and runs a network until a signal or a failure. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { lockDirectory } from './lock.js';
import { ROOT } from './network.js';
import { StartError } from './start-error.js';

const VISION_MODEL = join(ROOT, 'apps/provider/demo-models/viso/viso.gguf');

/** Agent arguments for the demo models. The text model is loaded at start, the image and vision models on demand. */
export const DEMO_MODEL_ARGS = ['demo-text', 'demo-image', ...(existsSync(VISION_MODEL) ? ['demo-vision'] : [])].flatMap((model) => [
  '--model',
  model,
]);

/** Callbacks of a network to the start script, and the signal that cancels a start. */
export interface StartControl {
  readonly signal: AbortSignal;
  /** Called with a line for the user, such as a restart of a process. */
  readonly onNotice: (text: string) => void;
  /** Called after the network failed and was stopped. */
  readonly onFailure: (reason: string) => void;
}

interface LaunchOptions<Network> {
  readonly dataDir: string;
  readonly start: (control: StartControl) => Promise<Network>;
  /** Called when all models are served. */
  readonly onReady: (network: Network) => void;
}

/** Locks the data directory, builds, and runs a network. Resolves to the exit code: 0 after a signal, 1 after a failure. */
export async function launch<Network extends { stop(): Promise<void> }>(options: LaunchOptions<Network>): Promise<number> {
  const unlock = lockDirectory(options.dataDir);
  try {
    return await run(options);
  } finally {
    unlock();
  }
}

async function run<Network extends { stop(): Promise<void> }>({ start, onReady }: LaunchOptions<Network>): Promise<number> {
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => interrupted.abort());
  console.log('Building and starting; this takes a few seconds.');
  build();

  let failed = false;
  let network: Network;
  try {
    network = await start({
      signal: interrupted.signal,
      onNotice: (text) => console.error(text),
      onFailure: (reason) => {
        console.error(`The network stopped: ${reason}`);
        failed = true;
        interrupted.abort();
      },
    });
  } catch (error) {
    if (interrupted.signal.aborted && !failed) return 0;
    throw error;
  }
  onReady(network);
  if (!interrupted.signal.aborted) await new Promise((resolve) => interrupted.signal.addEventListener('abort', resolve));
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

/** File that only a full build of the coordinator writes. */
const FULL_BUILD = join(ROOT, 'apps/coordinator/dist/.tsbuildinfo');

/**
 * Turbo tasks that a network and the README's commands need in a new checkout. Programs are bundled from sources without the
 * compiler, whose type checks take most of the time of a full build.
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
