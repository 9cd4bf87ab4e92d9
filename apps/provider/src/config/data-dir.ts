/** Where the agent keeps its key, its models, its settings and its logs; and the names of the files that several commands know. */
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

/** `flags`: values of the command line. The flag goes before INFERENCE_PROVIDER_HOME, and that before the user's home directory. */
export function dataDirOf(
  flags: { readonly 'data-dir'?: string | boolean | undefined },
  env: Readonly<Record<string, string | undefined>> = process.env,
): string {
  const given = flags['data-dir'];
  if (typeof given === 'string' && given !== '') return resolve(given);
  return env.INFERENCE_PROVIDER_HOME ? resolve(env.INFERENCE_PROVIDER_HOME) : join(homedir(), '.inference-provider');
}

export function configPath(dataDir: string): string {
  return join(dataDir, 'config.toml');
}
