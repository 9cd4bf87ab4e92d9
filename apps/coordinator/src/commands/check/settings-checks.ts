/** Settings part of the command `check`: reports invalid values, names without effect, and values that are unusual in production. */
import { statSync } from 'node:fs';
import { closest } from 'fastest-levenshtein';
import { type Config, readConfig } from '../../config/config.js';
import type { Environment } from '../../config/environment.js';
import { SECRET_SETTINGS } from '../../config/secret-files.js';
import { StartupError } from '../../config/startup-error.js';
import type { CommandContext } from '../command.js';
import { type Finding, ok, warning } from './finding.js';

/** Maximum number of times that {@link readAllSettings} reads the settings. */
const MAX_READS = 50;
const SETTING_NAME = /\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*\b/g;
/** Variables that Node.js, libraries or the system may read, so that they are never reported as unused. */
const FOREIGN_VARIABLE = /^(?:OTEL_|PG|NODE_|UV_|SSL_|TZ$|LANG$|LC_|(?:HTTPS?|NO|ALL)_PROXY$)/;

interface ReadSettings {
  /** Null if there is a problem. */
  readonly config: Config | null;
  readonly problems: readonly string[];
  /** Names of all settings that `readConfig` asked for, set or not. */
  readonly names: ReadonlySet<string>;
}

/**
 * Finds the invalid settings, although `readConfig` throws at the first one.
 *
 * After each error, removes the setting that the error names, and calls `readConfig` again. An error that names an already removed
 * setting is a consequence of the removal, and not reported.
 */
export function readAllSettings(env: Environment): ReadSettings {
  const problems: string[] = [];
  const names = new Set<string>();
  const remaining: Record<string, string | undefined> = { ...env };
  const observed = new Proxy(remaining, {
    get: (target, name) => {
      if (typeof name === 'string') names.add(name);
      return Reflect.get(target, name);
    },
  });
  const removed = new Set<string>();
  for (let round = 0; round < MAX_READS; round++) {
    try {
      const config = readConfig(observed);
      return { config: problems.length === 0 ? config : null, problems, names };
    } catch (error) {
      if (!(error instanceof StartupError)) throw error;
      const named = error.message.match(SETTING_NAME) ?? [];
      if (!named.some((name) => removed.has(name))) problems.push(error.message);
      // Messages name the invalid setting first.
      const invalid = named.find((name) => (remaining[name] ?? '') !== '');
      if (invalid === undefined) break;
      removed.add(invalid);
      delete remaining[invalid];
    }
  }
  return { config: null, problems, names };
}

export function checkSettings(
  { problems, names }: ReadSettings,
  { fileSettings, lateSettings }: Pick<CommandContext, 'fileSettings' | 'lateSettings'>,
): Finding[] {
  const unread = Object.keys(fileSettings).filter((name) => !names.has(name) && !FOREIGN_VARIABLE.test(name));
  const findings = [
    ...problems.map((text): Finding => ({ state: 'problem', text, remedy: null })),
    ...lateSettings.map((name) => lateSetting(name)),
    // After a problem, `readConfig` may not have asked for every setting.
    ...(problems.length > 0 ? [] : unread.map((name) => unusedSettingFinding(name, [...names]))),
  ];
  return findings.length > 0 ? findings : [ok(`${[...names].length} settings were read, with their defaults`)];
}

/**
 * A warning, not a problem: systemd may pass the same file as the environment of `serve`, where the variable has its effect.
 */
function lateSetting(name: string): Finding {
  return warning(
    `${name} in the settings file has no effect on this command: Node reads it from the environment at its start`,
    `Run the command with ${name}=… in its environment.`,
  );
}

/** Finding for a name in the settings file that was never read: misspelt, or used only together with another setting. */
function unusedSettingFinding(name: string, names: readonly string[]): Finding {
  const nearest = closest(name, names);
  const condition = name.startsWith('MDM_')
    ? 'MDM_URL'
    : name.startsWith('METRICS_')
      ? 'METRICS_PORT'
      : name === 'MAIL_FROM'
        ? 'SMTP_URL'
        : null;
  const remedy = condition === null || nearest === name ? `Remove it, or correct its name: ${nearest}?` : `It needs ${condition}.`;
  return warning(`${name} in the settings file has no effect`, remedy);
}

/** Warns of valid settings that are unusual in production. */
export function checkChoices(config: Config): Finding[] {
  const { console: web, trustedProxies } = config;
  const findings: Finding[] = [];
  const warn = (text: string, remedy: string): void => void findings.push(warning(text, remedy));
  if (config.development) warn('DEVELOPMENT is on: anyone can deposit money, and mails are written to the log', 'Remove DEVELOPMENT.');
  if (config.allowSimulatedEnclave) warn('ALLOW_SIMULATED_ENCLAVE is on: providers without a Secure Enclave are admitted', 'Remove it.');
  if (config.minTrustLevel === 'self_signed') {
    warn('MIN_TRUST_LEVEL is self_signed: the hardware of providers is not proved', 'Set up device management, and set it to hardware.');
  } else if (config.deviceManagement === null) {
    warn('MIN_TRUST_LEVEL is hardware, and no devices are managed: no provider gets requests', 'See docs/device-management.md.');
  }
  if (web.publicOrigin === null) {
    warn(
      'PUBLIC_URL is not set: the console answers at local addresses only',
      'Set the address that browsers use, such as https://gateway.example.',
    );
  } else if (!web.publicOrigin.startsWith('https://')) {
    warn('PUBLIC_URL is not https: session cookies and API keys travel unencrypted', 'Put a proxy with TLS in front.');
  } else if (trustedProxies.length === 0) {
    warn(
      'TRUSTED_PROXIES is not set: behind a proxy, all clients count as one address',
      'Set the address of the proxy, such as 127.0.0.1.',
    );
  }
  return findings;
}

/** Warns of secret files that every user of this machine can read or change. */
export function checkSecretFiles(env: Environment, settingsFile: string | null): Finding[] {
  const files = SECRET_SETTINGS.map((name) => env[`${name}_FILE`] ?? '').filter((path) => path !== '');
  if (settingsFile !== null) files.push(settingsFile);
  const exposed = files.filter((path) => {
    const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0;
    return (mode & 0o007) !== 0;
  });
  if (exposed.length > 0)
    return exposed.map((path) => warning(`${path} can be read or changed by every user of this machine`, `chmod o= ${path}`));
  return files.length === 0 ? [] : [ok(`${files.length} ${files.length === 1 ? 'file is' : 'files are'} closed to other users`)];
}
