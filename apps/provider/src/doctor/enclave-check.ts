/** Checks the enclave key: through a running daemon, otherwise with a helper started for the check. */

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { EnclaveError, nativeHelperBuild, nativeHelperCommand, openEnclave, simulatedHelperCommand } from '@inference/enclave';
import { requestEnclaveCheck } from '../control/control-client.js';
import { type Finding, ok, problem, skipped } from './check.js';

const ASK_MS = 3_500;
/** Shorter than the check's limit, because a helper that hangs must also be ended. */
const HELPER_MS = 1_800;
const REMEDY = 'Restart the provider. If the problem remains, build the enclave helper again; keep the data directory.';

/** Never creates a key. If a daemon is `running`, its helper is asked. */
export async function checkEnclave(dataDir: string, running: boolean, simulated: boolean, version: string): Promise<Finding[]> {
  if (running) {
    const { usable, kind, problem: why } = await requestEnclaveCheck(dataDir, ASK_MS);
    return [usable ? ok(`the enclave works (${kind})`) : problem(`the enclave does not sign: ${why ?? 'unknown'}`, REMEDY)];
  }
  const folder = join(dataDir, 'enclave');
  const command = simulated ? simulatedHelperCommand({ dataDir: folder }) : nativeHelperCommand({ dataDir: folder });
  if (command === null) return [noHelper()];
  if (!existsSync(folder) || readdirSync(folder).length === 0) return [skipped('the provider never ran here, so no key exists yet')];
  try {
    return [await checkSigning(command, version)];
  } catch (error) {
    if (!(error instanceof EnclaveError)) throw error;
    return [problem(`the enclave does not sign: ${error.message}`, error.code === 'key_unavailable' ? keyRemedy(folder) : REMEDY)];
  }
}

/** Why the provider cannot start on this machine, with a remedy; null if an enclave helper exists. Starts nothing. */
export function missingEnclave(dataDir: string, simulated: boolean): Finding | null {
  return simulated || nativeHelperCommand({ dataDir: join(dataDir, 'enclave') }) !== null ? null : noHelper();
}

function noHelper(): Finding {
  if (process.platform !== 'darwin')
    return problem(
      'there is no Secure Enclave on this machine',
      'Serve from a Mac with Apple silicon. For a development network, use --simulated-enclave.',
    );
  return problem('the enclave helper has not been built', `Run xcode-select --install, then: sh '${nativeHelperBuild()}'`);
}

async function checkSigning(command: readonly string[], version: string): Promise<Finding> {
  const enclave = await openEnclave({ command, timeoutMs: HELPER_MS, onEvent: () => {} });
  try {
    await enclave.attest({ version });
    return ok(`the enclave works (${enclave.kind})`);
  } finally {
    await enclave.close();
  }
}

function keyRemedy(folder: string): string {
  return (
    `The key is in ${folder}: restore a backup of this machine with mode 0600 (chmod -R go= '${folder}'). ` +
    'Without a backup, move the folder away: this machine then gets a new key and starts over as a new provider.'
  );
}
