/** Checks of the configuration: settings file, hardening, secrets, and the service. */
import { existsSync } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { configPath } from '../config/data-dir.js';
import { ConfigError, readConfig } from '../config/read-config.js';
import type { DaemonStatus } from '../control/daemon-status.js';
import { foreignDaemon } from '../service/foreign-daemon.js';
import type { ServiceManager } from '../service/service.js';
import { systemdUnitOf } from '../service/systemd-unit-of.js';
import { type Finding, note, ok, problem, skipped } from './check.js';

const VALIDATE_HINT = 'To validate: inference-provider serve --check';
const REMEDY = `Correct that line. ${VALIDATE_HINT}`;

/** @param running Status of the daemon; null if none answers. */
export async function checkSettings(dataDir: string, running: Pick<DaemonStatus, 'settings'> | null): Promise<Finding[]> {
  const path = configPath(dataDir);
  try {
    readConfig(path);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const consequence = running === null ? '' : '; the provider continues with the previous settings';
    return [
      problem(`${error.message}${consequence}`, error.line === null ? `Make ${path} a readable text file. ${VALIDATE_HINT}` : REMEDY),
    ];
  }
  const waiting = running?.settings.needs_restart ?? [];
  if (running !== null && running.settings.problem !== null) return [problem(running.settings.problem, REMEDY)];
  if (waiting.length > 0) return [note(`${waiting.join(', ')}: in effect after a restart`, 'Run: inference-provider restart')];
  return [ok(existsSync(path) ? `the settings in ${path} are valid` : 'no settings file; the defaults apply')];
}

/** Missing protection of prompts and keys. */
export function checkHardening({ hardening }: Pick<DaemonStatus, 'hardening'>): Finding[] {
  const findings: Finding[] = [];
  if (hardening.core_dumps !== 'off') {
    findings.push(
      note(
        'a crash may write a core dump, which contains prompts',
        'Run the provider as a service (inference-provider start), or after `ulimit -c 0`.',
      ),
    );
  }
  if (hardening.engine_network === 'none') {
    const why = hardening.engine_network_problem ?? 'unknown';
    findings.push(note(`processes that run models have network access: ${why}`, 'See docs/security.md; nothing is broken.'));
  }
  return findings.length > 0 ? findings : [ok('core dumps are off; processes that run models have no network access')];
}

/** The files that the daemon repairs at its start (`secret-modes.ts`). */
const SECRET_PATHS = ['config.toml', 'account.json', 'enclave', 'logs'];

export async function checkSecrets(dataDir: string): Promise<Finding[]> {
  const findings: Finding[] = [];
  const visit = async (path: string): Promise<void> => {
    const found = await lstat(path).catch(() => null);
    if (found === null || found.isSymbolicLink()) return;
    const uid = process.getuid?.();
    if (uid !== undefined && found.uid !== uid)
      findings.push(problem(`${path} belongs to another user`, `Run: sudo chown -R "$USER" '${dataDir}'`));
    else if ((found.mode & 0o077) !== 0) findings.push(problem(`other users can read ${path}`, `Run: chmod go= '${path}'`));
    if (found.isDirectory()) for (const name of await readdir(path).catch(() => [])) await visit(join(path, name));
  };
  for (const name of SECRET_PATHS) await visit(join(dataDir, name));
  return findings.length > 0 ? findings : [ok('keys, tokens and logs are yours alone')];
}

/**
 * Whether the service of `start`, or a systemd unit of the owner, runs the provider.
 *
 * @param status Null if no daemon answers.
 * @param isFrozen Whether another check already reports that the provider does not answer.
 */
export async function checkService(
  manager: ServiceManager,
  label: string,
  status: DaemonStatus | null,
  isFrozen = false,
  unitOf: (pid: number) => string | null = systemdUnitOf,
): Promise<Finding[]> {
  const state = await manager.state(label);
  const unit = foreignDaemon(status, state, unitOf)?.unit ?? null;
  if (status !== null && unit !== null && state.kind !== 'not_running') {
    return [
      problem(
        `the provider (process ${status.pid}) runs under systemd, as ${unit}, and ${manager.name} tries to run a second one`,
        'To stop only the second one, run: inference-provider stop',
      ),
    ];
  }
  switch (state.kind) {
    case 'running':
      if (status === null && isFrozen) return [ok(`the provider runs under ${manager.name}`)];
      if (status === null)
        return [problem(`the provider runs under ${manager.name}, but is not responding`, 'Run: inference-provider restart')];
      return [ok(`the provider runs under ${manager.name}`)];
    case 'waiting': {
      const how = state.lastExit === null ? '' : ` (${state.lastExit})`;
      return [
        problem(
          `the provider keeps crashing${how}, and ${manager.name} restarts it`,
          'See the output of the crashes: inference-provider logs --crash',
        ),
      ];
    }
    case 'not_running': {
      if (status === null) return [skipped('not started as a service')];
      if (unit !== null) return [ok(`the provider runs under systemd, as ${unit}`)];
      return [
        note(
          'not started as a service by `inference-provider start`, so it may not restart after a crash or a login',
          'If you started it by hand, stop the process, then run: inference-provider start',
        ),
      ];
    }
  }
}
