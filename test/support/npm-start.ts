/** `NpmStart`: runs `npm start` or another start script as a child process, with a data directory of the test. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { descendantsOf, waitUntilGone } from './processes.js';

export interface Demo {
  readonly base_url: string;
  readonly api_key: string;
  readonly admin_key: string;
  readonly text_model: string;
  readonly vision_model?: string;
}

export const ROOT = resolve(fileURLToPath(new URL('../..', import.meta.url)));

type Command = readonly [program: string, ...args: string[]];

/** Runs a start script without npm, which saves 0.4 s of processor time. */
export const scriptCommand = (script: string): Command => [process.execPath, '--import', 'tsx', script];

export class NpmStart<Contents extends Demo = Demo> {
  readonly #child: ChildProcess;
  readonly #dataDir: string;
  readonly exited: Promise<number | null>;
  #output = '';

  constructor(dataDir: string, env: Readonly<Record<string, string>> = {}, [program, ...args]: Command = ['npm', 'start']) {
    this.#dataDir = dataDir;
    this.#child = spawn(program, args, { cwd: ROOT, env: { ...process.env, DATA_DIR: dataDir, PORT: '0', ...env } });
    this.#child.stdout?.on('data', (chunk: Buffer) => {
      this.#output += chunk.toString('utf8');
    });
    this.#child.stderr?.on('data', (chunk: Buffer) => {
      this.#output += chunk.toString('utf8');
    });
    this.exited = new Promise((done) => this.#child.once('close', done));
  }

  get output(): string {
    return this.#output;
  }

  descendants(): { pid: number; command: string }[] {
    return descendantsOf(this.#child.pid as number);
  }

  /** Waits for the ready message; rejects when the process ends earlier. */
  async ready(): Promise<Contents> {
    const ended = this.exited.then((code) => {
      throw new Error(`npm ended with ${code}:\n${this.#output}`);
    });
    const up = (async () => {
      while (!this.#output.includes('Ctrl-C ends everything')) await new Promise((done) => setTimeout(done, 50));
    })();
    await Promise.race([up, ended]);
    return this.demo();
  }

  demo(): Contents {
    return JSON.parse(readFileSync(join(this.#dataDir, 'demo.json'), 'utf8')) as Contents;
  }

  hasDemoFile(): boolean {
    return existsSync(join(this.#dataDir, 'demo.json'));
  }

  /** Signals only the started command, and waits for its exit. Resolves to the exit code and surviving processes. */
  async end(signal: NodeJS.Signals = 'SIGINT'): Promise<{ code: number | null; left: number[] }> {
    const pids = this.descendants().map((row) => row.pid);
    this.#child.kill(signal);
    const code = await this.exited;
    return { code, left: await waitUntilGone(pids) };
  }
}
