/** A real nats-server on free ports, for tests. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

/** Debian installs the server where the path of an ordinary user may not lead. */
export function hasNatsServer(): boolean {
  try {
    execFileSync('nats-server', ['--version'], { env: ENVIRONMENT, timeout: 10_000 });
    return true;
  } catch {
    return false;
  }
}

const ENVIRONMENT = { ...process.env, PATH: `${process.env.PATH ?? ''}:/usr/sbin:/usr/local/sbin` };

export class NatsServer {
  readonly port: number;
  readonly directory = mkdtempSync(join(tmpdir(), 'nats-'));
  readonly #config: string;
  #process: ChildProcess | null = null;

  constructor(port: number, config: string) {
    this.port = port;
    this.#config = join(this.directory, 'nats.conf');
    writeFileSync(this.#config, `listen: 127.0.0.1:${port}\n${config}`);
  }

  get url(): string {
    return `nats://127.0.0.1:${this.port}`;
  }

  async start(): Promise<void> {
    const child = spawn('nats-server', ['-c', this.#config], { stdio: 'ignore', env: ENVIRONMENT });
    this.#process = child;
    while (child.exitCode === null) {
      const socket = connect(this.port, '127.0.0.1');
      const isOpen = await new Promise<boolean>((resolve) => {
        socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
      });
      socket.destroy();
      if (isOpen) return;
    }
    throw new Error('nats-server has ended');
  }

  signal(signal: NodeJS.Signals): void {
    this.#process?.kill(signal);
  }

  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = null;
    if (child === null || child.exitCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }

  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.directory, { recursive: true });
  }
}
