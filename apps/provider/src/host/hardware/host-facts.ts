/** `readHostFacts`: facts about the host for statistics, placement and memory planning. Read once at start. */
import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { LINUX_FILES, type LinuxFactTexts, linuxFacts } from './linux.js';
import { MAC_FACTS, type MacFactTexts, macFacts } from './mac.js';

export interface HostFacts {
  /** For example `Apple M3 Max`. */
  readonly chip: string;
  /** For example `M3`; the chip's name if the family is unknown. */
  readonly chipFamily: string;
  readonly cpuCores: number;
  /** Core counts by kind; null if the system does not distinguish them. */
  readonly performanceCores: number | null;
  readonly efficiencyCores: number | null;
  /** GPU cores; 0 if unknown. */
  readonly gpuCores: number;
  readonly memoryBytes: number;
  /** GB/s; 0 if unknown. */
  readonly bandwidthGbs: number;
  /** For example `macOS`, `26.1` and `25B78`; empty if unknown. */
  readonly osName: string;
  readonly osVersion: string;
  readonly osBuild: string;
  /** For example `Mac16,5`; empty if unknown, as is the next. */
  readonly modelIdentifier: string;
  readonly serialNumber: string;
}

interface FactSource {
  readonly platform: NodeJS.Platform;
  /** `/`, or the folder of a simulated machine; files missing there are read from this machine. */
  readonly root: string;
}

const COMMAND_TIMEOUT_MS = 5_000;
const run = promisify(execFile);

/** Never rejects; facts of failed commands and missing files stay unknown. */
export async function readHostFacts({ platform, root }: FactSource = { platform: process.platform, root: '/' }): Promise<HostFacts> {
  if (platform === 'darwin') {
    const texts = await Promise.all(Object.entries(MAC_FACTS).map(async ([name, command]) => [name, await output(command)] as const));
    return macFacts(Object.fromEntries(texts) as MacFactTexts);
  }
  const texts = await Promise.all(Object.entries(LINUX_FILES).map(async ([name, path]) => [name, await contents(root, path)] as const));
  return linuxFacts({ ...(Object.fromEntries(texts) as Omit<LinuxFactTexts, 'capacities'>), capacities: await capacities(root) });
}

/** `sysctl` fails on an unknown name but still prints the other values. */
async function output([command, ...args]: readonly [string, ...string[]]): Promise<string> {
  try {
    return (await run(command, args, { timeout: COMMAND_TIMEOUT_MS, killSignal: 'SIGKILL', maxBuffer: 4 << 20 })).stdout;
  } catch (error) {
    const { stdout } = error as { stdout?: unknown };
    return typeof stdout === 'string' ? stdout : '';
  }
}

async function contents(root: string, path: string): Promise<string> {
  const read = (base: string): Promise<string> => readFile(join(base, path), 'utf8').catch(() => '');
  const text = await read(root);
  return text === '' && root !== '/' ? read('/') : text;
}

/** Capacity of each processor relative to the strongest, as the kernel reports it (sysfs-devices-system-cpu). */
async function capacities(root: string): Promise<readonly string[]> {
  const folder = 'sys/devices/system/cpu';
  const names = await readdir(join(root, folder)).catch(() => []);
  const processors = names.filter((name) => /^cpu\d+$/.test(name));
  return Promise.all(processors.map((name) => contents(root, `${folder}/${name}/cpu_capacity`)));
}
