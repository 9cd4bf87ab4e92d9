/** Whether the enclave's key can be used: by the daemon where one runs, else by a helper that is started for this look. */

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { nativeHelperCommand, openEnclave, simulatedHelperCommand } from '@inference/enclave';
import { askEnclave } from '../control/control-client.js';
import { type Finding, ok, problem, skipped } from './check.js';

const ASK_MS = 3_500;
const REMEDY = 'Restart the provider. If this stays, build the enclave helper again; keep the data directory.';

/** `running`: a daemon answers. A key is never made here. */
export async function checkEnclave(dataDir: string, running: boolean, simulated: boolean, version: string): Promise<Finding[]> {
  if (running) {
    const { usable, kind, problem: why } = await askEnclave(dataDir, ASK_MS);
    return [usable ? ok(`the enclave (${kind}) signs`) : problem(`the enclave does not sign: ${why ?? 'unknown'}`, REMEDY)];
  }
  const folder = join(dataDir, 'enclave');
  if (!existsSync(folder) || readdirSync(folder).length === 0)
    return [skipped('the provider was never started here, so that there is no key yet')];
  const command = simulated ? simulatedHelperCommand({ dataDir: folder }) : nativeHelperCommand({ dataDir: folder });
  if (command === null)
    return [problem('the enclave helper is not there', 'Build it, or give --simulated-enclave for a simulated network.')];
  const enclave = await openEnclave({ command, onEvent: () => {} });
  try {
    await enclave.attest({ version });
    return [ok(`the enclave (${enclave.kind}) signs`)];
  } finally {
    await enclave.close();
  }
}
