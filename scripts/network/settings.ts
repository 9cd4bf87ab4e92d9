/** Environment variables of `npm start` and `npm run cluster`: PORT, DATA_DIR, PROVIDERS and MODEL_PATH. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { StartError } from './start-error.js';

export interface Settings {
  readonly port: number;
  readonly dataDir: string;
  readonly providers: number;
  /** GGUF file. Null for the demo models. */
  readonly modelPath: string | null;
}

/** `defaultProviders` applies if PROVIDERS is unset. Throws a {@link StartError} that names the wrong variable. */
export function readSettings(env: NodeJS.ProcessEnv, defaultProviders: number): Settings {
  const modelPath = env.MODEL_PATH ? resolve(env.MODEL_PATH) : null;
  if (modelPath !== null && !existsSync(modelPath)) throw new StartError(`MODEL_PATH: there is no file ${modelPath}`);
  return {
    port: readInteger(env, 'PORT', 8080, 0, 65_535),
    dataDir: resolve(env.DATA_DIR || '.data'),
    providers: readInteger(env, 'PROVIDERS', defaultProviders, 1, 64),
    modelPath,
  };
}

function readInteger(env: NodeJS.ProcessEnv, name: string, fallback: number, min: number, max: number): number {
  const text = env[name];
  if (text === undefined || text === '') return fallback;
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= min && value <= max) return value;
  throw new StartError(`${name} must be a whole number from ${min} to ${max}, not ${JSON.stringify(text)}`);
}
