/** `commandOutput`: runs a system command that reports facts about the host, such as `sysctl`. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** Machine whose facts are read. */
export interface HostSource {
  readonly platform: NodeJS.Platform;
  /** `/`, or the folder of a simulated machine. */
  readonly root: string;
}

const COMMAND_MS = 5_000;
const run = promisify(execFile);

/** Standard output, also of a failed command: `sysctl` fails if one of several names is unknown. Empty if there is none. */
export async function commandOutput([command, ...args]: readonly [string, ...string[]]): Promise<string> {
  try {
    return (await run(command, args, { timeout: COMMAND_MS, killSignal: 'SIGKILL', maxBuffer: 4 << 20 })).stdout;
  } catch (error) {
    const { stdout } = error as { readonly stdout?: unknown };
    return typeof stdout === 'string' ? stdout : '';
  }
}
