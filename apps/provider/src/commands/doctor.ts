/** `doctor`: looks at this machine and at the coordinator's view of it, and says what to do. Ends within ten seconds, whatever hangs. */
import { resolve } from 'node:path';
import { askStatus, ControlError } from '../control/control-client.js';
import type { DaemonStatus } from '../control/daemon-status.js';
import { judgeAccount } from '../doctor/account-check.js';
import { type Check, type CheckResult, type CheckState, type Finding, ok, problem, runChecks, skipped } from '../doctor/check.js';
import { judgeClock, judgeView, reachCoordinator } from '../doctor/coordinator-checks.js';
import { checkEnclave } from '../doctor/enclave-check.js';
import { checkCondition, checkDataDirectory, checkDisk, checkModel } from '../doctor/local-checks.js';
import { checkHardening, checkSettings } from '../doctor/settings-check.js';
import { agentVersion } from '../version.js';
import type { Command } from './command.js';
import { type OwnerOptions, ownerOptions, UsageError } from './owner-options.js';
import { print, wrapped } from './terminal.js';

export const doctorCommand: Command = {
  name: 'doctor',
  summary: 'Checks this machine and how the coordinator sees it, with remedies.',
  usage: `doctor [--data-dir DIR] [--json] [--coordinator URL] [--model FILE.gguf] [--simulated-enclave]

Coordinator, model and enclave are those of the running provider; the options are for when none runs.
Exit codes: 0 nothing needs you, 1 something does, 2 the command line cannot be understood.`,
  run: doctor,
};

const DAEMON_MS = 4_000;
/** For each check; they run at once, and those that need the daemon's status come after it. */
const CHECK_MS = 4_000;

async function doctor(args: readonly string[]): Promise<number> {
  const options = ownerOptions(args, {
    coordinator: { type: 'string' },
    model: { type: 'string' },
    'simulated-enclave': { type: 'boolean' },
  });
  addressOf(options.values.coordinator);
  const results = await examine(options);
  const worst = results.some(({ state }) => state === 'problem') ? 1 : 0;
  await print(options.json ? [JSON.stringify({ healthy: worst === 0, checks: results }, null, 2)] : linesOf(results));
  return worst;
}

async function examine({ dataDir, values }: OwnerOptions): Promise<CheckResult[]> {
  let status: DaemonStatus | null = null;
  const daemon = async (): Promise<Finding[]> => {
    try {
      status = await askStatus(dataDir, DAEMON_MS);
      return [ok(`the provider ${status.version} is ${status.state} (process ${status.pid})`)];
    } catch (error) {
      if (!(error instanceof ControlError)) throw error;
      const remedy = error.problem === 'not_running' ? 'Start it.' : 'Restart it.';
      return [problem(error.message, remedy)];
    }
  };
  const first = await runChecks([{ name: 'daemon', run: daemon }], DAEMON_MS);
  // Assigned in the check above.
  const known = status as DaemonStatus | null;
  const model = typeof values.model === 'string' ? resolve(values.model) : (known?.model_files[0] ?? null);
  const url = addressOf(values.coordinator) ?? known?.coordinator ?? null;
  const reached = reachCoordinator(url);
  const simulated = known?.simulated_enclave ?? values['simulated-enclave'] === true;
  const checks: Check[] = [
    { name: 'data directory', run: () => checkDataDirectory(dataDir) },
    { name: 'enclave', run: () => checkEnclave(dataDir, known !== null, simulated, agentVersion()) },
    { name: 'settings', run: () => checkSettings(dataDir, known) },
    { name: 'hardening', run: async () => (known === null ? [] : checkHardening(known)) },
    { name: 'disk', run: () => checkDisk(dataDir) },
    { name: 'model', run: () => checkModel(model) },
    { name: 'machine', run: checkCondition },
    { name: 'network', run: async () => (await reached).findings },
    { name: 'clock', run: async () => judgeClock(known?.clock_skew_ms ?? (await reached).skewMs) },
    {
      name: 'account',
      run: async () => (known === null ? [skipped('the provider does not run')] : judgeAccount(known.account)),
    },
    {
      name: 'coordinator',
      run: async () =>
        known === null ? [skipped('the provider does not run, so that the coordinator knows nothing of it')] : judgeView(known),
    },
  ];
  return [...first, ...(await runChecks(checks, CHECK_MS))];
}

/** Throws {@link UsageError}. */
function addressOf(text: string | boolean | undefined): string | null {
  if (typeof text !== 'string') return null;
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
    throw new UsageError('--coordinator must be an http or https address.');
  return text.replace(/\/+$/, '');
}

const MARKS: Readonly<Record<CheckState, string>> = { ok: 'ok', note: 'note', problem: 'PROBLEM', skipped: 'skipped' };

function linesOf(results: readonly CheckResult[]): string[] {
  const lines = results.flatMap(({ name, state, text, remedy }) => [
    ...wrapped(`${MARKS[state].padEnd(8)} ${name.padEnd(15)} `, text),
    ...(remedy === null ? [] : wrapped(' '.repeat(11), remedy)),
  ]);
  const problems = results.filter(({ state }) => state === 'problem').length;
  return [...lines, '', problems === 0 ? 'Nothing needs you.' : `${problems} ${problems === 1 ? 'thing needs' : 'things need'} you.`];
}
