/** Output of system commands that report facts about the host. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const COMMAND_MS = 3_000;
const run = promisify(execFile);

/** Standard output; empty if the command is missing, fails or takes too long. */
export async function commandOutput([command, ...args]: readonly [string, ...string[]]): Promise<string> {
  try {
    return (await run(command, args, { timeout: COMMAND_MS, killSignal: 'SIGKILL', maxBuffer: 4 << 20 })).stdout;
  } catch {
    return '';
  }
}
