/** `withSecretFiles` reads secret settings from files, in which Docker, Kubernetes and systemd provide secrets. */
import { readFileSync } from 'node:fs';
import { type Environment, text } from './environment.js';
import { errorReason, StartupError } from './startup-error.js';

/** Settings that may contain a secret. Each can be replaced by `<NAME>_FILE`, the path of a file with the value. */
export const SECRET_SETTINGS = [
  'ADMIN_KEY',
  'AUTH_SECRET',
  'DATABASE_URL',
  'MAIL_TOKEN',
  'MDM_ACME_HOOK_SECRET',
  'MDM_API_KEY',
  'MDM_SCEP_CHALLENGE',
  'MDM_WEBHOOK_SECRET',
  'NATS_URL',
  'OTEL_EXPORTER_OTLP_HEADERS',
  'SMTP_PASSWORD',
  'SMTP_URL',
  'STRIPE_SECRET_KEY',
  'STRIPE_WEBHOOK_SECRET',
] as const;

const MAX_BYTES = 64 * 1024;

/**
 * The environment, with each secret `NAME` read from the file that `NAME_FILE` names.
 *
 * @throws {StartupError} The message names the setting, never its value.
 */
export function withSecretFiles(env: Environment): Environment {
  const values: Record<string, string> = {};
  for (const name of SECRET_SETTINGS) {
    const path = text(env, `${name}_FILE`);
    if (path === null) continue;
    if (text(env, name) !== null) throw new StartupError(`${name} and ${name}_FILE are both set: remove one of them.`);
    values[name] = readSecret(`${name}_FILE`, path);
  }
  // Inherits other variables from `env`, so that `readAllSettings` can observe which ones are read.
  return Object.assign(Object.create(env) as Environment, values);
}

/** Content of a secret file, without one final line break. Throws {@link StartupError} naming the setting. */
function readSecret(setting: string, path: string): string {
  let content: string;
  try {
    content = readFileSync(path, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    throw new StartupError(`${setting} names the file ${path}, which cannot be read: ${errorReason(error)}.`, { cause: error });
  }
  if (content === '') throw new StartupError(`${setting} names the file ${path}, which is empty.`);
  if (content.length > MAX_BYTES || content.includes('\n')) {
    throw new StartupError(`${setting} names the file ${path}, which must contain one line.`);
  }
  return content;
}
