/** Starts the enclave helper process of the daemon, and checks on request that its key can sign. */
import { join } from 'node:path';
import { type Enclave, nativeHelperCommand, openEnclave, simulatedHelperCommand } from '@inference/enclave';
import type { EnclaveCheck } from '../control/daemon-status.js';
import { StartupError } from '../startup-error.js';
import { agentVersion } from '../version.js';
import { logEnclave } from './daemon-log.js';
import type { DaemonOptions } from './daemon-options.js';

const CHECK_TIMEOUT_MS = 3_000;

/** Returns the command line of the enclave helper. Throws {@link StartupError} if this machine has no enclave or no helper. */
export function helperCommand({ dataDir, simulatedEnclave }: DaemonOptions): readonly string[] {
  const folder = join(dataDir, 'enclave');
  if (simulatedEnclave) return simulatedHelperCommand({ dataDir: folder });
  if (process.platform !== 'darwin') {
    throw new StartupError(
      'there is no Secure Enclave on this machine; for a simulated network set simulated_enclave = true, or serve with --simulated-enclave',
    );
  }
  const command = nativeHelperCommand({ dataDir: folder });
  if (command === null) throw new StartupError('the enclave helper has not been built; `inference-provider doctor` says how');
  return command;
}

/** Starts the helper. Throws EnclaveError. */
export function startEnclave(command: readonly string[], { log }: DaemonOptions): Promise<Enclave> {
  return openEnclave({ command, onEvent: (event) => logEnclave(log, event) });
}

/** Checks the enclave key by signing an attestation. Never rejects. */
export async function checkEnclave(enclave: Enclave): Promise<EnclaveCheck> {
  const { kind } = enclave;
  try {
    await enclave.attest({ version: agentVersion() }, AbortSignal.timeout(CHECK_TIMEOUT_MS));
    return { usable: true, kind, problem: null };
  } catch (error) {
    return { usable: false, kind, problem: error instanceof Error ? error.message : 'unknown' };
  }
}
