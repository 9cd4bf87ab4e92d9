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

/** Standard output, also of failing commands, as `sysctl` fails on unknown names; empty if the command is missing. */
export async function commandOutput([command, ...args]: readonly [string, ...string[]]): Promise<string> {
  try {
    return (await run(command, args, { timeout: COMMAND_MS, killSignal: 'SIGKILL', maxBuffer: 4 << 20 })).stdout;
  } catch (error) {
    const { stdout } = error as { readonly stdout?: unknown };
    return typeof stdout === 'string' ? stdout : '';
  }
}
