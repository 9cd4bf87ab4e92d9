/** Runs a real NATS server for one test. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Debian installs `nats-server` in /usr/sbin, which may be missing in a user's PATH. */
const ENVIRONMENT = { ...process.env, PATH: `${process.env.PATH ?? ''}:/usr/sbin:/usr/local/sbin` };

export function hasNatsServer(): boolean {
  try {
    execFileSync('nats-server', ['--version'], { env: ENVIRONMENT, timeout: 10_000 });
    return true;
  } catch {
    return false;
  }
}

/** Starts a server with the given configuration, by default on a port that the system chooses. */
export async function startNats(config = '', port: number | null = null): Promise<NatsServer> {
  const server = new NatsServer(config, port);
  try {
    await server.start();
  } catch (error) {
    await server.close();
    throw error;
  }
  return server;
}

export class NatsServer {
  readonly #directory = mkdtempSync(join(tmpdir(), 'nats-'));
  readonly #config: string;
  #port: number | null;
  #process: ChildProcess | null = null;

  /** `port` null: the system chooses a port at the first start. */
  constructor(config: string, port: number | null) {
    this.#config = config;
    this.#port = port;
  }

  get port(): number {
    if (this.#port === null) throw new Error('nats-server has not started');
    return this.#port;
  }

  get url(): string {
    return `nats://127.0.0.1:${this.port}`;
  }

  /** Starts the process, at the same address each time. */
  async start(): Promise<void> {
    const file = join(this.#directory, 'nats.conf');
    writeFileSync(file, `listen: "127.0.0.1:${this.#port ?? -1}"\nports_file_dir: "${this.#directory}"\n${this.#config}`);
    const child = spawn('nats-server', ['-c', file], { stdio: 'ignore', env: ENVIRONMENT });
    this.#process = child;
    await once(child, 'spawn');
    while (!hasEnded(child)) {
      const port = this.#portOf(child);
      if (port !== null && (await isOpen(port))) {
        this.#port = port;
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    throw new Error('nats-server has ended');
  }

  /** Port from the server's ports file; null until the server listens. A connection test could reach another program. */
  #portOf({ pid }: ChildProcess): number | null {
    const name = readdirSync(this.#directory).find((one) => one.endsWith(`_${pid}.ports`));
    if (name === undefined) return null;
    try {
      const { nats } = JSON.parse(readFileSync(join(this.#directory, name), 'utf8')) as { nats: readonly string[] };
      return Number(new URL(nats[0] ?? '').port);
    } catch {
      // The file is not complete yet.
      return null;
    }
  }

  signal(signal: NodeJS.Signals): void {
    this.#process?.kill(signal);
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const child = this.#process;
    this.#process = null;
    if (child === null || child.pid === undefined || hasEnded(child)) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
  }

  /** Ends the process, and removes its files. */
  async close(): Promise<void> {
    await this.stop('SIGKILL');
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const finish = (isConnected: boolean): void => {
      socket.destroy();
      resolve(isConnected);
    };
    socket.once('connect', () => finish(true)).once('error', () => finish(false));
  });
}
