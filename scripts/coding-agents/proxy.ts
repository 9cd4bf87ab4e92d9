/** `ProxyProgram`: runs `inference-verify proxy` as a child process, and collects the verdicts that it prints. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { ROOT } from '../network/network.js';

const PROGRAM = join(ROOT, 'packages/verifier/bin/inference-verify.js');

export class ProxyProgram {
  #lines: string[] = [];

  private constructor(private readonly child: ChildProcess) {}

  /** Set before `start` resolves. */
  baseUrl = '';

  /** Starts the proxy on a free port. Rejects with the proxy's output if the proxy ends first. */
  static start(coordinatorUrl: string, stateFile: string): Promise<ProxyProgram> {
    const args = ['proxy', '--base-url', coordinatorUrl, '--listen', '127.0.0.1:0', '--allow-simulated', '--state', stateFile];
    const child = spawn(process.execPath, [PROGRAM, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    const proxy = new ProxyProgram(child);
    return new Promise((resolve, reject) => {
      const read = (line: string): void => {
        const [, baseUrl] = /^listening on (\S+)/.exec(line) ?? [];
        if (baseUrl === undefined) return void proxy.#lines.push(line);
        proxy.baseUrl = baseUrl;
        resolve(proxy);
      };
      for (const input of [child.stdout, child.stderr]) createInterface({ input }).on('line', read);
      child.once('error', reject);
      child.once('close', () => reject(new Error(`the proxy ended: ${proxy.#lines.join('\n')}`)));
    });
  }

  /** Output lines since the last call, without their first word, a time. */
  takeLines(): string[] {
    const lines = this.#lines.map((line) => line.replace(/^\S+ /, ''));
    this.#lines = [];
    return lines;
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.child.once('close', resolve));
    this.child.kill('SIGTERM');
    await closed;
  }
}
