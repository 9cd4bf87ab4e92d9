/** Location of the agent's data directory (key, models, settings, logs) and of its settings file. */
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

/** The directory of the flag, else of INFERENCE_PROVIDER_HOME, else `~/.inference-provider`. */
export function dataDirOf(
  flags: { readonly 'data-dir'?: string | boolean | undefined },
  env: Readonly<Record<string, string | undefined>> = process.env,
): string {
  const option = flags['data-dir'];
  if (typeof option === 'string' && option !== '') return resolve(option);
  return env.INFERENCE_PROVIDER_HOME ? resolve(env.INFERENCE_PROVIDER_HOME) : join(homedir(), '.inference-provider');
}

export function configPath(dataDir: string): string {
  return join(dataDir, 'config.toml');
}
