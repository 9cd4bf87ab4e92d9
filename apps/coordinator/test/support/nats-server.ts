/** Runs a real NATS server for one test. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../../../scripts/network/cluster/free-ports.js';

/** Debian installs the server in a folder that an ordinary user's PATH may lack. */
const ENVIRONMENT = { ...process.env, PATH: `${process.env.PATH ?? ''}:/usr/sbin:/usr/local/sbin` };

export function hasNatsServer(): boolean {
  try {
    execFileSync('nats-server', ['--version'], { env: ENVIRONMENT, timeout: 10_000 });
    return true;
  } catch {
    return false;
  }
}

/** Starts a server with the given configuration, on a free port by default. */
export async function startNats(config = '', port?: number): Promise<NatsServer> {
  const server = new NatsServer(config, port ?? (await freePort()));
  try {
    await server.start();
  } catch (error) {
    await server.close();
    throw error;
  }
  return server;
}

export class NatsServer {
  readonly port: number;
  readonly #directory = mkdtempSync(join(tmpdir(), 'nats-'));
  readonly #config: string;
  #process: ChildProcess | null = null;

  constructor(config: string, port: number) {
    this.port = port;
    this.#config = join(this.#directory, 'nats.conf');
    writeFileSync(this.#config, `listen: 127.0.0.1:${port}\n${config}`);
  }

  get url(): string {
    return `nats://127.0.0.1:${this.port}`;
  }

  /** Starts the process, at the same address each time. */
  async start(): Promise<void> {
    const child = spawn('nats-server', ['-c', this.#config], { stdio: 'ignore', env: ENVIRONMENT });
    this.#process = child;
    await once(child, 'spawn');
    while (!hasEnded(child)) {
      if (await isOpen(this.port)) return;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    throw new Error('nats-server has ended');
  }

  signal(signal: NodeJS.Signals): void {
    this.#process?.kill(signal);
  }

  /** Ends the process. */
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
