/** `doctor`: checks this machine and the coordinator's view of it, and prints remedies. Takes at most ten seconds. */
import { resolve } from 'node:path';
import type { Config } from '../../config/config.js';
import { configPath } from '../../config/data-dir.js';
import { readConfig } from '../../config/read-config.js';
import type { CheckResult, CheckState } from '../../doctor/check.js';
import { type DoctorTarget, examine } from '../../doctor/examine.js';
import { installation } from '../../update/installation.js';
import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { httpAddress } from '../input/coordinator-option.js';
import { type OwnerOptions, ownerOptions } from '../input/owner-options.js';
import { print, wrapped } from '../output/terminal.js';

export const doctorCommand: Command = {
  name: 'doctor',
  summary: 'Finds problems with this machine and says how to fix them.',
  usage: `doctor [--data-dir DIR] [--json] [--coordinator URL] [--model FILE.gguf] [--simulated-enclave]

Coordinator, model and enclave default to those of the running provider or of config.toml;
options override them. Ends within ten seconds.
Exit codes: 0 no action needed, 1 action needed, 2 invalid command line.`,
  run: doctor,
};

async function doctor(args: readonly string[]): Promise<number> {
  const options = ownerOptions(args, {
    coordinator: { type: 'string' },
    model: { type: 'string' },
    'simulated-enclave': { type: 'boolean' },
  });
  const begun = performance.now();
  const { checks } = await examine(doctorTargetOf(options));
  const took = Math.round(performance.now() - begun);
  const exitCode = checks.some(({ state }) => state === 'problem') ? EXIT.needsOwner : EXIT.fine;
  await print(options.json ? [JSON.stringify({ healthy: exitCode === EXIT.fine, took_ms: took, checks }, null, 2)] : linesOf(checks));
  return exitCode;
}

/** Throws UsageError. */
export function doctorTargetOf({ dataDir, values }: OwnerOptions): DoctorTarget {
  const config = settingsOf(dataDir);
  return {
    dataDir,
    found: installation(),
    config,
    coordinator: httpAddress(values.coordinator) ?? httpAddress(config?.coordinator),
    model: typeof values.model === 'string' ? resolve(values.model) : null,
    simulated: values['simulated-enclave'] === true || config?.simulated_enclave === true,
  };
}

function settingsOf(dataDir: string): Config | null {
  try {
    return readConfig(configPath(dataDir));
  } catch {
    // The check of the settings reports the reason.
    return null;
  }
}

const MARKS: Readonly<Record<CheckState, string>> = { ok: 'ok', note: 'note', problem: 'PROBLEM', skipped: 'skipped' };

function linesOf(results: readonly CheckResult[]): string[] {
  const lines = results.flatMap(({ name, state, text, remedy }) => [
    ...wrapped(`${MARKS[state].padEnd(8)} ${name.padEnd(15)} `, text),
    ...(remedy === null ? [] : wrapped(' '.repeat(11), remedy)),
  ]);
  const problems = results.filter(({ state }) => state === 'problem').length;
  return [...lines, '', problems === 0 ? 'No problems found.' : `${problems} ${problems === 1 ? 'problem' : 'problems'} to fix.`];
}
