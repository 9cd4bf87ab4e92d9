/** Prepares the environment of a daemon at its start: data directory, facts about the host, and hardening of its processes. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { DaemonStatus } from '../control/daemon-status.js';
import { type Confinement, findConfinement } from '../host/hardening/confinement.js';
import { forbidCoreDumps } from '../host/hardening/core-dumps.js';
import { repairModes } from '../host/hardening/secret-modes.js';
import { type HostFacts, readHostFacts } from '../host/hardware/host-facts.js';
import { StartupError } from '../startup-error.js';
import type { DaemonOptions } from './daemon-options.js';

export interface DaemonEnvironment {
  readonly host: HostFacts;
  /** Applied to every process with a model. */
  readonly confinement: Confinement;
  readonly hardening: DaemonStatus['hardening'];
}

/** Throws {@link StartupError}. */
export function createDataDir(dataDir: string): void {
  try {
    mkdirSync(join(dataDir, 'enclave'), { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new StartupError(`the data directory ${dataDir} cannot be written (${(error as NodeJS.ErrnoException).code})`);
  }
}

/** Throws InsecureModeError. */
export async function prepareEnvironment({ dataDir, config, simulatedHost, log }: DaemonOptions): Promise<DaemonEnvironment> {
  for (const path of repairModes(dataDir)) log.warn({ event: 'mode_mended', path }, 'file mode repaired: other users could read this file');
  const source = simulatedHost === null ? { platform: process.platform, root: '/' } : { platform: 'linux' as const, root: simulatedHost };
  const [host, coreDumps, confinement] = await Promise.all([
    readHostFacts(source),
    forbidCoreDumps(),
    confinementFor(config.hardening.engine_network),
  ]);
  const hardening = { core_dumps: coreDumps, engine_network: confinement.kind, engine_network_problem: confinement.why };
  return { host, confinement, hardening };
}

async function confinementFor(engineNetwork: 'deny' | 'allow'): Promise<Confinement> {
  if (engineNetwork === 'deny') return await findConfinement();
  return { kind: 'none', why: 'network access is allowed by the settings (hardening.engine_network)', wrap: [] };
}
