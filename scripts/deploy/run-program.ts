/** `run` and `works`: run a program until exit, and collect the output. For the scripts in this folder. */
import { spawn } from 'node:child_process';

interface Output {
  readonly stdout: string;
  readonly stderr: string;
}

interface RunOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** Copies the output to stdout while the program runs. Default: false. */
  readonly isShown?: boolean;
}

/** Resolves to the output after exit code 0. Rejects otherwise, with the last 15 lines of output, or if the program is missing. */
export function run(program: string, args: readonly string[], { cwd, env, isShown = false }: RunOptions = {}): Promise<Output> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    const output = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', (text: string) => {
        output[name] += text;
        if (isShown) process.stdout.write(text);
      });
    }
    child.once('error', (error) => reject(new Error(`${program} cannot be started: ${error.message}`)));
    child.once('close', (code, signal) => {
      if (code === 0) return resolve(output);
      const lastLines = (output.stderr || output.stdout).trim().split('\n').slice(-15).join('\n');
      reject(new Error(`${program} ${args[0] ?? ''} ended with ${signal ?? `exit code ${code}`}:\n${lastLines}`));
    });
  });
}

/** Whether a program starts and exits with code 0. */
export async function works(program: string, args: readonly string[]): Promise<boolean> {
  return await run(program, args).then(
    () => true,
    () => false,
  );
}
