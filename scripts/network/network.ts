/**
 * A whole network on this machine: one coordinator and some provider agents with simulated enclaves, as processes of their
 * own. `npm start`, the whole-network tests and the benches all start it here.
 */
import { mkdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Child, spawnChild } from './child.js';
import { type Supervised, supervise } from './supervise.js';

export interface NetworkOptions {
  /** 0 lets the system choose. */
  readonly port: number;
  readonly dataDir: string;
  readonly providers: number;
  /** GGUF file to serve instead of the demo model. */
  readonly modelPath?: string;
  readonly coordinatorEnv?: Readonly<Record<string, string>>;
  readonly providerArgs?: readonly string[];
  /** Milliseconds without any progress after which a start has failed. */
  readonly startDeadlineMs?: number;
  /** Gives the start up; it then rejects, with nothing left running. */
  readonly signal?: AbortSignal;
  readonly onNotice?: (text: string) => void;
  /** The network cannot go on: what happened. It is stopped already. */
  readonly onFailure?: (reason: string) => void;
}

export interface Network {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly adminKey: string;
  /** Model ids as `GET /v1/models` lists them. */
  readonly models: readonly string[];
  readonly coordinator: Supervised;
  readonly providers: readonly Supervised[];
  readonly logDir: string;
  stop(): Promise<void>;
}

/** A start that failed, in words for the person who asked for it. */
export class StartError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'StartError';
  }
}

const ROOT = resolve(fileURLToPath(new URL('../..', import.meta.url)));
const COORDINATOR = join(ROOT, 'apps/coordinator/dist/main.js');
const PROVIDER = join(ROOT, 'apps/provider/dist/main.js');
const POLL_MS = 100;

/** Starts a network and waits until every provider serves. Throws {@link StartError}; nothing is left running then. */
export async function startNetwork(options: NetworkOptions): Promise<Network> {
  const deadlineMs = options.startDeadlineMs ?? 50_000;
  const logDir = join(options.dataDir, 'logs');
  makeDirectory(logDir);
  const running: Supervised[] = [];
  const stop = async (): Promise<void> => {
    // Providers first, so that each can end its jobs while the coordinator still listens.
    await Promise.all(running.slice(1).map((child) => child.stop()));
    await running[0]?.stop();
  };
  const fail = (name: string) => (ended: Child) => {
    void stop().then(() => options.onFailure?.(`the ${name} ended again and again: ${ended.lastWords()}`));
  };
  const keepAlive = (name: string, child: Child, start: () => Promise<Child>): Supervised => {
    const supervised = supervise(child, {
      start,
      onRestart: (ended) => options.onNotice?.(`the ${name} ended (${ended.lastWords()}); starting it again`),
      onGivenUp: fail(name),
    });
    running.push(supervised);
    return supervised;
  };

  try {
    const givenUp = aborted(options.signal);
    const { coordinator, baseUrl } = await Promise.race([startCoordinator(options, logDir, deadlineMs, keepAlive), givenUp]);
    const keys = readDevelopmentKeys(options.dataDir);
    const providers = await Promise.all(
      Array.from({ length: options.providers }, (_, index) => startProvider(options, index + 1, baseUrl, logDir, keepAlive)),
    );
    const models = await Promise.race([waitUntilServed(baseUrl, keys.apiKey, providers, deadlineMs), givenUp]);
    return { baseUrl, ...keys, models, coordinator, providers, logDir, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

type KeepAlive = (name: string, child: Child, start: () => Promise<Child>) => Supervised;

async function startCoordinator(options: NetworkOptions, logDir: string, deadlineMs: number, keepAlive: KeepAlive) {
  let announce: (url: string) => void = () => {};
  const listening = new Promise<string>((resolve) => {
    announce = resolve;
  });
  const start = (port: number): Promise<Child> =>
    spawnChild({
      name: 'coordinator',
      argv: [COORDINATOR],
      env: {
        ...process.env,
        HOST: '127.0.0.1',
        PORT: String(port),
        DATA_DIR: options.dataDir,
        DEVELOPMENT: '1',
        ALLOW_SIMULATED_ENCLAVE: '1',
        ...options.coordinatorEnv,
      },
      logFile: join(logDir, 'coordinator.log'),
      onLine: (line) => {
        const address = addressInLog(line);
        if (address !== null) announce(address);
      },
    });
  const first = await start(options.port);
  const baseUrl = await Promise.race([
    listening,
    endOf(first, 'coordinator'),
    deadline(deadlineMs, 'the coordinator did not listen'),
  ]).catch(async (error: unknown) => {
    await first.stop(1000);
    throw error;
  });
  // A coordinator that is started again must come back where its providers and clients look for it.
  const port = Number(new URL(baseUrl).port);
  return { coordinator: keepAlive('coordinator', first, () => start(port)), baseUrl };
}

async function startProvider(options: NetworkOptions, number: number, baseUrl: string, logDir: string, keepAlive: KeepAlive) {
  const name = `provider-${number}`;
  const start = (): Promise<Child> =>
    spawnChild({
      name,
      argv: [
        PROVIDER,
        'serve',
        ...['--coordinator', baseUrl],
        ...['--data-dir', join(options.dataDir, name)],
        '--simulated-enclave',
        ...(options.modelPath === undefined ? [] : ['--model', options.modelPath]),
        ...(options.providerArgs ?? []),
      ],
      env: process.env,
      logFile: join(logDir, `${name}.log`),
    });
  return keepAlive(name, await start(), start);
}

/** Waits until one model is served by all providers. A provider that ends meanwhile fails the start at once. */
async function waitUntilServed(baseUrl: string, apiKey: string, providers: readonly Supervised[], deadlineMs: number): Promise<string[]> {
  const ends = providers.map((provider) => endOf(provider.current, provider.current.name));
  const served = async (): Promise<string[]> => {
    for (;;) {
      const models = await listModels(baseUrl, apiKey);
      const ids = models.filter((model) => model.providers >= providers.length).map((model) => model.id);
      if (ids.length > 0) return ids;
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  };
  return Promise.race([served(), ...ends, deadline(deadlineMs, 'no provider came up with a model')]);
}

/** Model ids with the number of their providers. */
async function listModels(baseUrl: string, apiKey: string): Promise<{ id: string; providers: number }[]> {
  const response = await fetch(`${baseUrl}/v1/models`, { headers: { authorization: `Bearer ${apiKey}` } });
  if (!response.ok) throw new StartError(`the coordinator refused its own development key with status ${response.status}`);
  const list = (await response.json()) as { data: { id: string; metadata: { provider_count: number } }[] };
  return list.data.map((model) => ({ id: model.id, providers: model.metadata.provider_count }));
}

async function endOf(child: Child, name: string): Promise<never> {
  await child.exited;
  throw new StartError(`the ${name} did not start: ${child.lastWords()}`);
}

/** Rejects when the signal comes; never settles without one. */
function aborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    const stop = (): void => reject(new StartError('interrupted'));
    if (signal?.aborted) stop();
    else signal?.addEventListener('abort', stop, { once: true });
  });
}

function deadline(ms: number, what: string): Promise<never> {
  return new Promise((_, reject) => {
    setTimeout(() => reject(new StartError(`${what} within ${Math.round(ms / 1000)} s`)), ms).unref();
  });
}

function makeDirectory(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new StartError(`the data directory cannot be used: ${(error as Error).message}`);
  }
}

function readDevelopmentKeys(dataDir: string): { apiKey: string; adminKey: string } {
  const keys = JSON.parse(readFileSync(join(dataDir, 'coordinator', 'development-keys.json'), 'utf8')) as Record<string, string>;
  const { api_key: apiKey, admin_key: adminKey } = keys;
  if (apiKey === undefined || adminKey === undefined) throw new StartError('the coordinator made no development keys');
  return { apiKey, adminKey };
}

/** Address in the coordinator's "listening" log line, or null when the line is another one. */
function addressInLog(line: string): string | null {
  if (!line.includes('listening')) return null;
  return /http:\/\/[^"\s]+/.exec(line)?.[0] ?? null;
}
