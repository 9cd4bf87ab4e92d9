/** `Terminal`: runs a command on a pseudo-terminal (`script`), and renders the output to a screen that tests read. */
import { type ChildProcessWithoutNullStreams, execFile, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import xterm from '@xterm/headless';

const run = promisify(execFile);

export class Terminal {
  readonly exit: Promise<number | null>;
  /** Raw output as text. */
  output = '';
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #screen: InstanceType<typeof xterm.Terminal>;
  readonly #folder: string;
  #written: Promise<void> = Promise.resolve();

  /** `command`: shell command line. */
  constructor(command: string, { columns, rows, env = {} }: { columns: number; rows: number; env?: Readonly<Record<string, string>> }) {
    this.#folder = mkdtempSync(join(tmpdir(), 'terminal-'));
    // `before` shows that the command restores the earlier screen. The trap keeps shells such as dash alive at Ctrl-C.
    const prepared = `trap : INT; stty rows ${rows} cols ${columns}; tty > ${this.#folder}/tty; echo before; ${command}; code=$?; echo after; stty -a > ${this.#folder}/stty; exit $code`;
    const args = process.platform === 'darwin' ? ['-q', '/dev/null', 'sh', '-c', prepared] : ['-qefc', prepared, '/dev/null'];
    this.#child = spawn('script', args, { env: { ...process.env, TERM: 'xterm-256color', ...env } });
    this.#screen = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true });
    this.#child.stdout.on('data', (data: Buffer) => {
      this.output += data.toString('utf8');
      this.#written = new Promise((resolve) => this.#screen.write(data, resolve));
    });
    this.exit = new Promise((resolve) => this.#child.once('close', resolve));
  }

  /** Current screen lines without trailing blanks. */
  async lines(): Promise<string[]> {
    await this.#written;
    const { active } = this.#screen.buffer;
    return Array.from(
      { length: this.#screen.rows },
      (_, row) =>
        active
          .getLine(active.baseY + row)
          ?.translateToString(true, 0, this.#screen.cols)
          .trimEnd() ?? '',
    );
  }

  /** `normal`, or `alternate` while a program uses the alternate screen. */
  async buffer(): Promise<string> {
    await this.#written;
    return this.#screen.buffer.active.type;
  }

  /** Resolves with the screen once it contains the text. Rejects with the screen if the program ends before. */
  async shows(text: string | RegExp): Promise<string> {
    let hasEnded = false;
    void this.exit.then(() => {
      hasEnded = true;
    });
    for (;;) {
      const last = hasEnded;
      const picture = (await this.lines()).join('\n');
      if (typeof text === 'string' ? picture.includes(text) : text.test(picture)) return picture;
      if (last) throw new Error(`the program ended without showing ${text}:\n${picture}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  type(keys: string): void {
    this.#child.stdin.write(keys);
  }

  async resize(columns: number, rows: number): Promise<void> {
    this.#screen.resize(columns, rows);
    const tty = readFileSync(join(this.#folder, 'tty'), 'utf8').trim();
    await run('stty', [process.platform === 'darwin' ? '-f' : '-F', tty, 'rows', String(rows), 'cols', String(columns)]);
  }

  /** Terminal settings after the command ended. */
  settings(): string {
    return readFileSync(join(this.#folder, 'stty'), 'utf8');
  }

  async dispose(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.exit;
    this.#screen.dispose();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
