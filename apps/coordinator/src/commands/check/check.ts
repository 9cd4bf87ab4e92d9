/** `check` command: tests settings, database and services before a start, and prints findings with remedies. Changes nothing. */
import type { Config } from '../../config/config.js';
import { type Command, type CommandContext, EXIT, optionsOf } from '../command.js';
import { checkListenAddress, checkPublicAddress } from './address-checks.js';
import { checkDatabase } from './database-checks.js';
import { checkConsole, checkDataDirectory, checkReleases } from './file-checks.js';
import { type Check, type CheckResult, type Finding, linesOf, runChecks, skipped } from './finding.js';
import { checkCluster, checkDeviceManagement, checkMail, checkPayments } from './service-checks.js';
import { checkChoices, checkSecretFiles, checkSettings, readAllSettings } from './settings-checks.js';

/** Maximum duration of each check. Checks run concurrently. */
const CHECK_LIMIT_MS = 8000;

export const checkCommand: Command = {
  usage: `check [--public] [--release-key BASE64] [--json] [--env-file FILE]

Reads every setting, and tries what they name: database (a write that is rolled back), its clock, data directory, listening
address, mail, payments, NATS, device management, agent releases and console. No mail is sent, and nothing is changed.
Works before the first start and beside a running coordinator. Ends within ten seconds.

  --public              also asks PUBLIC_URL, and checks that this coordinator answers
  --release-key BASE64  also verifies the signatures of the agent releases
  --json                prints JSON
Exit codes: 0 no problem, 1 a problem, 2 a setting cannot be used.`,
  async run(args, context) {
    const options = optionsOf(args, {
      public: { type: 'boolean' },
      'release-key': { type: 'string' },
      json: { type: 'boolean' },
    });
    const startedAt = performance.now();
    const settings = readAllSettings(context.env);
    const results = [
      ...named('settings', checkSettings(settings, context)),
      ...named('secrets', checkSecretFiles(context.env, context.settingsFile)),
      ...(settings.config === null
        ? named('other checks', [skipped('the settings come first')])
        : await checkServices(settings.config, { isPublic: options.public === true, releaseKey: options['release-key'] ?? null })),
    ];
    print(results, options.json === true, Math.round(performance.now() - startedAt), context);
    if (settings.config === null) return EXIT.unusable;
    return results.some(({ state }) => state === 'problem') ? EXIT.problem : EXIT.ok;
  },
};

async function checkServices(
  config: Config,
  { isPublic, releaseKey }: { readonly isPublic: boolean; readonly releaseKey: string | null },
): Promise<CheckResult[]> {
  const databaseFindings = checkDatabase(config);
  // Three checks share `databaseFindings`. Only the check `database` reports an unreachable database.
  const unlessUnreachable = (name: 'clock' | 'operators') => (): Promise<readonly Finding[]> =>
    databaseFindings.then((findings) => findings[name]).catch(() => [skipped('the database cannot be read')]);
  const checks: Check[] = [
    { name: 'choices', run: async () => checkChoices(config) },
    { name: 'data directory', run: () => checkDataDirectory(config) },
    { name: 'database', run: async () => (await databaseFindings).database },
    { name: 'clock', run: unlessUnreachable('clock') },
    { name: 'operators', run: unlessUnreachable('operators') },
    { name: 'address', run: (signal) => checkListenAddress(config, signal) },
    ...(isPublic ? [{ name: 'public address', run: (signal: AbortSignal) => checkPublicAddress(config, signal) }] : []),
    { name: 'console', run: () => checkConsole(config) },
    { name: 'mail', run: (signal) => checkMail(config.console.mail, signal) },
    { name: 'payments', run: () => checkPayments(config) },
    { name: 'devices', run: (signal) => checkDeviceManagement(config, signal) },
    { name: 'releases', run: () => checkReleases(config, releaseKey) },
    { name: 'cluster', run: () => checkCluster(config) },
  ];
  return runChecks(checks, CHECK_LIMIT_MS);
}

function named(name: string, findings: readonly Finding[]): CheckResult[] {
  return findings.map((finding) => ({ name, ...finding }));
}

function print(results: readonly CheckResult[], json: boolean, tookMs: number, { out }: CommandContext): void {
  const isHealthy = !results.some(({ state }) => state === 'problem');
  for (const line of json ? [JSON.stringify({ healthy: isHealthy, took_ms: tookMs, checks: results }, null, 2)] : linesOf(results))
    out(line);
}
