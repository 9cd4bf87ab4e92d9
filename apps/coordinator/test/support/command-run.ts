/** Runs a command of the coordinator in this process. */
import { runCommandLine } from '../../src/commands/run.js';

export interface CommandRun {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** `answers`: input for prompts on the terminal; absent: there is no terminal. */
export async function runCommand(
  args: readonly string[],
  env: Record<string, string | undefined> = {},
  answers?: string[],
): Promise<CommandRun> {
  const [out, err]: [string[], string[]] = [[], []];
  const code = await runCommandLine(args, {
    env: { ...env },
    out: (line) => void out.push(line),
    err: (line) => void err.push(line),
    askHidden: answers === undefined ? null : async () => answers.shift() ?? '',
  });
  return { code, out: out.join('\n'), err: err.join('\n') };
}
