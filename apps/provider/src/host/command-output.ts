/** Output of system commands that report facts about the host. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** Where facts about the host are read. */
export interface HostSource {
  readonly platform: NodeJS.Platform;
  /** `/`, or the folder of a simulated machine. */
  readonly root: string;
}

const COMMAND_MS = 5_000;
const run = promisify(execFile);

/**
 * Standard output, empty if the command is missing. Also of a command that fails or takes too long: `sysctl` fails on an unknown name but
 * prints the other values.
 */
export async function commandOutput([command, ...args]: readonly [string, ...string[]]): Promise<string> {
  try {
    return (await run(command, args, { timeout: COMMAND_MS, killSignal: 'SIGKILL', maxBuffer: 4 << 20 })).stdout;
  } catch (error) {
    const { stdout } = error as { readonly stdout?: unknown };
    return typeof stdout === 'string' ? stdout : '';
  }
}
