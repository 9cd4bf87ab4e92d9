/**
 * `npm start`: builds if needed, starts a whole network on this machine, prints usage, and stops everything on Ctrl-C. Settings:
 * PORT, DATA_DIR, PROVIDERS, MODEL_PATH.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeDirectory } from './network/directory.js';
import { type Network, StartError, startNetwork } from './network/network.js';

interface Settings {
  readonly port: number;
  readonly dataDir: string;
  readonly providers: number;
  readonly modelPath: string | null;
}

const root = resolve(fileURLToPath(new URL('..', import.meta.url)));

function readSettings(env: NodeJS.ProcessEnv): Settings {
  const modelPath = env.MODEL_PATH ? resolve(env.MODEL_PATH) : null;
  if (modelPath !== null && !existsSync(modelPath)) throw new StartError(`MODEL_PATH: there is no file ${modelPath}`);
  return {
    port: readInteger(env, 'PORT', 8080, 0, 65_535),
    dataDir: resolve(env.DATA_DIR || '.data'),
    providers: readInteger(env, 'PROVIDERS', 1, 1, 64),
    modelPath,
  };
}

function readInteger(env: NodeJS.ProcessEnv, name: string, fallback: number, min: number, max: number): number {
  const text = env[name];
  if (text === undefined || text === '') return fallback;
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= min && value <= max) return value;
  throw new StartError(`${name} must be a whole number from ${min} to ${max}, not ${JSON.stringify(text)}`);
}

/** One network per data directory: two would share a database and enclave keys. Locks the directory, creating it if needed. Returns the unlock function. Throws {@link StartError}. */
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

/** Process that holds the lock, or null when there is no live holder. */
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

function build(): void {
  const turbo = join(root, 'node_modules/.bin/turbo');
  if (!existsSync(turbo)) throw new StartError('the dependencies are not installed: run npm ci first');
  const env = { ...process.env, TURBO_TELEMETRY_DISABLED: '1' };
  const result = spawnSync(turbo, ['run', 'build', '--output-logs=errors-only'], { cwd: root, encoding: 'utf8', env });
  if (result.status !== 0) throw new StartError(`the build failed:\n${result.stdout}${result.stderr}`);
}

/** Writes addresses and keys for programs that use this network. Readable by the owner only, because of the keys. */
function writeDemoFile(dataDir: string, network: Network, textModel: string, imageModel: string | undefined): void {
  const path = join(dataDir, 'demo.json');
  const demo = {
    base_url: network.baseUrl,
    api_key: network.apiKey,
    admin_key: network.adminKey,
    text_model: textModel,
    ...(imageModel === undefined ? {} : { image_model: imageModel }),
  };
  writeFileSync(`${path}.new`, `${JSON.stringify(demo, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

function printUse(settings: Settings, network: Network, textModel: string, imageModel: string | undefined): void {
  const body = { model: textModel, temperature: 0, messages: [{ role: 'user', content: 'What is the capital of France?' }] };
  console.log(`
The network is up: ${settings.providers} provider(s) serving ${network.models.join(', ')}.

  console  ${network.baseUrl}/
  address  ${network.baseUrl}
  key      ${network.apiKey}

Open the console in a browser to sign up, look around and try a model. Mails, such as for a new password, are lines of the
coordinator's log here.

Ask it something:

  curl ${network.baseUrl}/v1/chat/completions \\
    -H "Authorization: Bearer ${network.apiKey}" \\
    -H "Content-Type: application/json" \\
    -d '${JSON.stringify(body)}'

${imageModel === undefined ? '' : drawingText(network, imageModel)}Verify an answer with curl and openssl:  scripts/verify-response.sh
Logs: ${network.logDir}    Ctrl-C ends everything.
`);
}

function drawingText({ baseUrl, apiKey }: Network, model: string): string {
  const body = { model, prompt: 'a red circle on a blue background', size: 'auto' };
  return `Have it draw something (the answer holds an address that lives for an hour):

  curl ${baseUrl}/v1/images/generations \\
    -H "Authorization: Bearer ${apiKey}" \\
    -H "Content-Type: application/json" \\
    -d '${JSON.stringify(body)}'

`;
}

/** Demo models: text, loaded at once, and images, loaded on demand. */
const DEMO_MODELS = ['--model', 'demo-text', '--model', 'demo-image'];

/** Runs the network until a signal or a failure. Resolves to the exit code. */
async function run(settings: Settings): Promise<number> {
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => interrupted.abort());
  console.log('Building and starting; this takes a few seconds.');
  build();

  const { modelPath, ...rest } = settings;
  let failed = false;
  let network: Network;
  try {
    network = await startNetwork({
      ...rest,
      ...(modelPath === null ? { providerArgs: DEMO_MODELS } : { modelPath }),
      managed: true,
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
  const textModel = network.models[0] as string;
  const [imageModel] = network.imageModels;
  writeDemoFile(settings.dataDir, network, textModel, imageModel);
  printUse(settings, network, textModel, imageModel);
  if (!interrupted.signal.aborted) await new Promise((resolve) => interrupted.signal.addEventListener('abort', resolve));
  await network.stop();
  return failed ? 1 : 0;
}

async function main(): Promise<number> {
  const settings = readSettings(process.env);
  const unlock = lockDirectory(settings.dataDir);
  try {
    return await run(settings);
  } finally {
    unlock();
  }
}

main()
  .catch((error: unknown) => {
    console.error(error instanceof StartError ? `Not started: ${error.message}` : error);
    return 1;
  })
  .then((code) => process.exit(code));
