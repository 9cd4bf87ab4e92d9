/** What a daemon stands on: its data directory, the enclave helper that it starts, the machine it reads, and how its engines are confined. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { nativeHelperCommand, simulatedHelperCommand } from '@inference/enclave';
import type { Config } from '../config/config.js';
import { type Confinement, findConfinement } from '../host/hardening/confinement.js';
import type { FactSource } from '../host/hardware/host-facts.js';
import { StartError } from '../startup-error.js';
import type { DaemonOptions } from './daemon-options.js';

/** Command line of the enclave helper. Throws {@link StartupError} where there is none. */
export function helperCommand(options: DaemonOptions): readonly string[] {
  const dataDir = join(options.dataDir, 'enclave');
  if (options.simulatedEnclave) return simulatedHelperCommand({ dataDir });
  if (process.platform !== 'darwin') {
    throw new StartError(
      'there is no Secure Enclave on this machine; for a simulated network set simulated_enclave = true, or serve with --simulated-enclave',
    );
  }
  const command = nativeHelperCommand({ dataDir });
  if (command === null) throw new StartError('the enclave helper has not been built; `inference-provider doctor` says how');
  return command;
}

/** How the processes that hold a model are kept from the network, as far as the settings want it. */
export async function confinementOf({ hardening }: Config): Promise<Confinement> {
  if (hardening.engine_network === 'deny') return await findConfinement();
  return { kind: 'none', why: 'the settings allow it the network (hardening.engine_network)', wrap: [] };
}

/** Where the facts of this machine are read. */
export function hostOf({ simulatedHost }: DaemonOptions): FactSource {
  return simulatedHost === null ? { platform: process.platform, root: '/' } : { platform: 'linux', root: simulatedHost };
}

/** Throws {@link StartupError}. */
export function makeDataDir(dataDir: string): void {
  try {
    mkdirSync(join(dataDir, 'enclave'), { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new StartError(`the data directory ${dataDir} cannot be written (${(error as NodeJS.ErrnoException).code})`);
  }
}
