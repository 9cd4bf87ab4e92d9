/** Whether the file of settings can be read, and whether the daemon that runs goes by it. */
import { existsSync } from 'node:fs';
import { configPath } from '../config/data-dir.js';
import { ConfigError, readConfig } from '../config/read-config.js';
import type { DaemonStatus } from '../control/daemon-status.js';
import { type Finding, note, ok, problem } from './check.js';

const LOOK = 'inference-provider serve --check looks at it again.';
const REMEDY = `Mend that line; ${LOOK}`;

/** `running`: what the daemon says, null where none runs. */
export async function checkSettings(dataDir: string, running: Pick<DaemonStatus, 'settings'> | null): Promise<Finding[]> {
  const path = configPath(dataDir);
  try {
    readConfig(path);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const goesOn = running === null ? '' : '; the provider goes on with the settings from before';
    return [problem(`${error.message}${goesOn}`, error.line === null ? `See that ${path} is a text that you can read. ${LOOK}` : REMEDY)];
  }
  const waiting = running?.settings.needs_restart ?? [];
  if (running !== null && running.settings.problem !== null) return [problem(running.settings.problem, REMEDY)];
  if (waiting.length > 0) return [note(`${waiting.join(', ')} will hold after a restart`, 'Run: inference-provider restart')];
  return [ok(existsSync(path) ? `the settings in ${path} are valid` : 'there is no file of settings, so that the defaults hold')];
}

/** What the daemon could not do to protect prompts and keys. */
export function checkHardening({ hardening }: Pick<DaemonStatus, 'hardening'>): Finding[] {
  const findings: Finding[] = [];
  if (hardening.core_dumps !== 'off') {
    findings.push(
      note('a crash may leave a core dump, which holds prompts', 'Run it as a service (inference-provider start), or after `ulimit -c 0`.'),
    );
  }
  if (hardening.engine_network === 'none') {
    const why = hardening.engine_network_problem ?? 'unknown';
    findings.push(
      note(`the processes that hold a model are not kept from the network: ${why}`, 'See docs/security.md; nothing is broken.'),
    );
  }
  return findings.length > 0 ? findings : [ok('no core dumps, and no network for the processes that hold a model')];
}
