/** `readHostFacts`: hardware and operating system of this machine. The daemon reads them once, at its start. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { commandOutput, type HostSource } from '../command-output.js';
import { LINUX_FILES, type LinuxFactTexts, linuxFacts } from './linux.js';
import { MAC_FACTS, type MacFactTexts, macFacts } from './mac.js';

export interface HostFacts {
  /** For example `Apple M3 Max`. */
  readonly chip: string;
  /** For example `M3`; the chip's name if the family is unknown. */
  readonly chipFamily: string;
  /** Physical cores. */
  readonly cpuCores: number;
  /** Core counts by kind, as for `efficiencyCores`; null if the system does not distinguish kinds. */
  readonly performanceCores: number | null;
  readonly efficiencyCores: number | null;
  /** GPU cores; 0 if unknown. */
  readonly gpuCores: number;
  readonly memoryBytes: number;
  /** Memory bandwidth in GB/s; 0 if unknown. */
  readonly bandwidthGbs: number;
  /** For example `macOS`, and `26.1` and `25B78` in the next two; empty if unknown. */
  readonly osName: string;
  readonly osVersion: string;
  readonly osBuild: string;
  /** For example `Mac16,5`. Empty if unknown, like the serial number. */
  readonly modelIdentifier: string;
  readonly serialNumber: string;
}

/** Never rejects; facts of failed commands and missing files stay unknown. Files missing under `root` are read from this machine. */
export async function readHostFacts({ platform, root }: HostSource = { platform: process.platform, root: '/' }): Promise<HostFacts> {
  if (platform === 'darwin') {
    const texts = await Promise.all(
      Object.entries(MAC_FACTS).map(async ([name, command]) => [name, await commandOutput(command)] as const),
    );
    return macFacts(Object.fromEntries(texts) as MacFactTexts);
  }
  const texts = await Promise.all(Object.entries(LINUX_FILES).map(async ([name, path]) => [name, await contents(root, path)] as const));
  return linuxFacts({ ...(Object.fromEntries(texts) as Omit<LinuxFactTexts, 'capacities'>), capacities: await capacities(root) });
}

async function contents(root: string, path: string): Promise<string> {
  const read = (base: string): Promise<string> => readFile(join(base, path), 'utf8').catch(() => '');
  const text = await read(root);
  return text === '' && root !== '/' ? read('/') : text;
}

/** Capacity of each processor relative to the strongest, from the kernel (sysfs-devices-system-cpu). */
async function capacities(root: string): Promise<readonly string[]> {
  const folder = 'sys/devices/system/cpu';
  const names = await readdir(join(root, folder)).catch(() => []);
  const processors = names.filter((name) => /^cpu\d+$/.test(name));
  return Promise.all(processors.map((name) => contents(root, `${folder}/${name}/cpu_capacity`)));
}
