/** What the machine is, for statistics, placement and the plan of its memory. Read once at start. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { linuxFacts } from './linux.js';
import { IOREG_ARGUMENTS, macFacts, SYSCTL_ARGUMENTS } from './mac.js';

export interface HostFacts {
  /** For example `Apple M3 Max`. */
  readonly chip: string;
  /** For example `M3`; where the chip is of no known family, its name. */
  readonly chipFamily: string;
  readonly cpuCores: number;
  /** 0 when not known. */
  readonly gpuCores: number;
  readonly memoryBytes: number;
  /** GB/s; 0 when not known. */
  readonly bandwidthGbs: number;
}

const COMMAND_TIMEOUT_MS = 5_000;
const run = promisify(execFile);

/** Never rejects: a command that fails or a file that is missing leaves its facts unknown. */
export async function readHostFacts(platform: NodeJS.Platform = process.platform): Promise<HostFacts> {
  if (platform === 'darwin') {
    return macFacts(await output('/usr/sbin/sysctl', SYSCTL_ARGUMENTS), await output('/usr/sbin/ioreg', IOREG_ARGUMENTS));
  }
  return linuxFacts(await contents('/proc/cpuinfo'), await contents('/proc/meminfo'));
}

async function output(command: string, args: readonly string[]): Promise<string> {
  try {
    return (await run(command, [...args], { timeout: COMMAND_TIMEOUT_MS, maxBuffer: 4 << 20 })).stdout;
  } catch {
    return '';
  }
}

async function contents(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch {
    return '';
  }
}
