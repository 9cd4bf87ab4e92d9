/** Runs a program to its end. */
import { spawn } from 'node:child_process';

interface Output {
  readonly stdout: string;
  readonly stderr: string;
}

interface RunOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** Prints output immediately. */
  readonly isShown?: boolean;
}

/** Rejects with the program's last output after a failure, or if the program is missing. */
export function run(program: string, args: readonly string[], { cwd, env, isShown = false }: RunOptions = {}): Promise<Output> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    const output = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].on('data', (data: Buffer) => {
        output[name] += data.toString();
        if (isShown) process.stdout.write(data);
      });
    }
    child.once('error', (error) => reject(new Error(`${program} cannot be started: ${error.message}`)));
    child.once('close', (code, signal) => {
      if (code === 0) return resolve(output);
      const lastWords = (output.stderr || output.stdout).trim().split('\n').slice(-15).join('\n');
      reject(new Error(`${program} ${args[0] ?? ''} ended with ${signal ?? `exit code ${code}`}:\n${lastWords}`));
    });
  });
}

/** Whether a program starts and succeeds. */
export async function works(program: string, args: readonly string[]): Promise<boolean> {
  return await run(program, args).then(
    () => true,
    () => false,
  );
}
