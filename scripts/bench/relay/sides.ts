/** `Processes`: starts the programs of the relay and other benches: the compared relays (sides), what is behind them, and clients. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Child, spawnChild } from '../../network/child.js';
import { freePort } from '../../network/cluster/free-ports.js';
import { ROOT, startCoordinatorAlone } from '../../network/network.js';
import type { Target } from './http-connection.js';

/** One of the compared relays. */
export interface Side {
  readonly name: string;
  readonly target: Target;
  /** Process of the relay, for CPU time and memory. */
  readonly pid: number;
  /** Process behind the relay. */
  readonly providerPid: number;
}

const PATH = '/v1/chat/completions';
const GATEWAY = '@portkey-ai/gateway@1.15.2';

export class Processes {
  readonly #directory: string;
  readonly #children: Child[] = [];

  constructor(directory: string) {
    this.#directory = directory;
  }

  async bareRelay(): Promise<Side> {
    const { child, ready } = await this.start('bare-relay');
    const provider = await this.start('bare-provider', [String(ready.port)]);
    const target = { port: Number(ready.port), path: PATH, headers: {} };
    return { name: 'bare relay', target, pid: child.pid, providerPid: provider.child.pid };
  }

  /** The other gateway, configured as a plain proxy of one upstream. */
  async gateway(): Promise<Side> {
    const { child: upstream, ready } = await this.start('bare-upstream');
    const port = await freePort();
    const program = installedGateway();
    const child = await this.#spawn('gateway', [program, '--headless', `--port=${port}`], { NODE_ENV: 'production' });
    const headers = {
      authorization: 'Bearer none',
      'x-portkey-provider': 'openai',
      'x-portkey-custom-host': `http://127.0.0.1:${ready.port}/v1`,
    };
    await Promise.race([listens(port), ended(child)]);
    return { name: 'gateway', target: { port, path: PATH, headers }, pid: child.pid, providerPid: upstream.pid };
  }

  /** The coordinator, with providers of 1024 slots each. `argv` replaces this build's program. */
  async coordinator(name: string, framing: 'agent' | 'frame-per-token', providers = 1, argv?: readonly string[]): Promise<Side> {
    // The rate limiter runs, as in production, with a limit that is never reached.
    const env = { LOG_LEVEL: 'info', RATE_LIMIT_KEY: '1000000000' };
    const coordinator = await startCoordinatorAlone(join(this.#directory, name), env, argv);
    this.#children.push(coordinator.child);
    const provider = await this.start('instant-provider', [coordinator.baseUrl.replace('http', 'ws'), framing, String(providers)]);
    const headers = { authorization: `Bearer ${coordinator.apiKey}` };
    const target = { port: Number(new URL(coordinator.baseUrl).port), path: PATH, headers };
    return { name: 'coordinator', target, pid: coordinator.child.pid, providerPid: provider.child.pid };
  }

  /** Starts a script in the folder of this file, or of the module `from`, and waits for its first message. */
  async start(
    name: string,
    args: readonly string[] = [],
    from: string = import.meta.url,
  ): Promise<{ readonly child: Child; readonly ready: Record<string, unknown> }> {
    const script = fileURLToPath(new URL(`./${name}.ts`, from));
    const child = await this.#spawn(name, ['--import', 'tsx', script, ...args]);
    return { child, ready: await Promise.race([child.message, ended(child)]) };
  }

  async stop(): Promise<void> {
    for (const child of this.#children.reverse()) await child.stop(3000);
  }

  async #spawn(name: string, argv: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Child> {
    const child = await spawnChild({ name, argv, env: { ...process.env, ...env }, logFile: join(this.#directory, `${name}.log`) });
    this.#children.push(child);
    return child;
  }
}

/** Program of the other gateway. The first run installs the package from npm: its 29 packages are not dependencies of the repository. */
function installedGateway(): string {
  const folder = join(ROOT, 'node_modules/.cache/relay-bench', GATEWAY);
  const program = join(folder, 'node_modules/@portkey-ai/gateway/build/start-server.js');
  if (!existsSync(program)) {
    mkdirSync(folder, { recursive: true });
    // Without install scripts, which would patch the gateway's dependencies.
    execFileSync('npm', ['install', '--prefix', folder, '--ignore-scripts', '--omit=dev', '--no-audit', '--no-fund', GATEWAY], {
      stdio: 'inherit',
    });
  }
  return program;
}

async function ended(child: Child): Promise<never> {
  await child.exited;
  throw new Error(`${child.name} ended: ${child.exitReason()}`);
}

async function listens(port: number): Promise<void> {
  for (;;) {
    try {
      await fetch(`http://127.0.0.1:${port}/`);
      return;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
