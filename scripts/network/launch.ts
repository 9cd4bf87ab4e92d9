/** Shared by the start scripts: builds the packages, and runs a network until a signal or a failure. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { lockDirectory } from './lock.js';
import { ROOT } from './network.js';
import { StartError } from './start-error.js';

const VISION_MODEL = join(ROOT, 'apps/provider/demo-models/viso/viso.gguf');

/** Arguments of an agent that serves the demo models: text, loaded at once; images and vision, loaded on demand. */
export const DEMO_MODEL_ARGS = ['demo-text', 'demo-image', ...(existsSync(VISION_MODEL) ? ['demo-vision'] : [])].flatMap((model) => [
  '--model',
  model,
]);

/** Callbacks of a network to its start script, and the signal that interrupts a start. */
export interface StartControl {
  readonly signal: AbortSignal;
  readonly onNotice: (text: string) => void;
  readonly onFailure: (reason: string) => void;
}

interface LaunchOptions<Network> {
  readonly dataDir: string;
  readonly start: (control: StartControl) => Promise<Network>;
  readonly onUp: (network: Network) => void;
}

/** Runs a network until a signal or a failure. Resolves to the exit code. */
export async function launch<Network extends { stop(): Promise<void> }>(options: LaunchOptions<Network>): Promise<number> {
  const unlock = lockDirectory(options.dataDir);
  try {
    return await run(options);
  } finally {
    unlock();
  }
}

async function run<Network extends { stop(): Promise<void> }>({ start, onUp }: LaunchOptions<Network>): Promise<number> {
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
  onUp(network);
  if (!interrupted.signal.aborted) await new Promise((resolve) => interrupted.signal.addEventListener('abort', resolve));
  await network.stop();
  return failed ? 1 : 0;
}

/** Ends this process with the exit code of a start script. */
export function exitWith(code: Promise<number>): void {
  void code
    .catch((error: unknown) => {
      console.error(error instanceof StartError ? `Not started: ${error.message}` : error);
      return 1;
    })
    .then((value) => process.exit(value));
}

/** Written by a full build of the coordinator. */
const FULL_BUILD = join(ROOT, 'apps/coordinator/dist/.tsbuildinfo');

/**
 * Tasks that a network and the README's commands need in a new checkout. The apps are bundled without the compiler's checks, which take
 * most of a full build's time.
 */
const FIRST_START_TASKS = [
  ...['@inference/coordinator', 'inference-provider', '@inference/console'].map((name) => `${name}#bundle`),
  ...['@inference/client', '@inference/device-simulation', '@inference/enclave', '@inference/verifier'].map((name) => `${name}#build`),
];

/** Builds what is not built yet. Throws {@link StartError}. */
function build(): void {
  const turbo = join(ROOT, 'node_modules/.bin/turbo');
  if (!existsSync(turbo)) throw new StartError('the dependencies are not installed: run npm ci first');
  const env = { ...process.env, TURBO_TELEMETRY_DISABLED: '1' };
  const tasks = existsSync(FULL_BUILD) ? ['build'] : FIRST_START_TASKS;
  const result = spawnSync(turbo, ['run', ...tasks, '--output-logs=errors-only'], { cwd: ROOT, encoding: 'utf8', env });
  if (result.status !== 0) throw new StartError(`the build failed:\n${result.stdout}${result.stderr}`);
}
