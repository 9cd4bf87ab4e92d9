/**
 * What the environment says. Every value is checked here, once, and a bad one is refused with a sentence that names it;
 * the rest of the program sees only this typed record.
 */
import { MAX_REQUEST_BYTES } from '@inference/protocol';
import { StartError } from './start-error.js';

export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export interface Config {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  readonly dataDir: string;
  /** First account and keys are made, and kept in a file. */
  readonly development: boolean;
  /** Providers whose enclave is simulated may register. */
  readonly allowSimulatedEnclave: boolean;
  readonly logLevel: LogLevel;
  /** Pause between two challenges of one provider, in milliseconds. */
  readonly challengeIntervalMs: number;
  /** Largest request body, in bytes; at most what the wire carries. */
  readonly maxRequestBytes: number;
}

/** Reads the environment. Throws {@link StartError} naming the first bad value. */
export function readConfig(env: Readonly<Record<string, string | undefined>>): Config {
  return {
    host: text(env, 'HOST', '127.0.0.1'),
    port: integer(env, 'PORT', 8080, 0, 65_535),
    dataDir: text(env, 'DATA_DIR', '.data'),
    development: flag(env, 'DEVELOPMENT'),
    allowSimulatedEnclave: flag(env, 'ALLOW_SIMULATED_ENCLAVE'),
    logLevel: choice(env, 'LOG_LEVEL', LOG_LEVELS, 'info'),
    challengeIntervalMs: 1000 * integer(env, 'CHALLENGE_INTERVAL_SECONDS', 300, 1, 86_400),
    maxRequestBytes: integer(env, 'MAX_REQUEST_BYTES', MAX_REQUEST_BYTES, 1, MAX_REQUEST_BYTES),
  };
}

type Env = Readonly<Record<string, string | undefined>>;

function text(env: Env, name: string, fallback: string): string {
  const value = env[name];
  return value === undefined || value === '' ? fallback : value;
}

function integer(env: Env, name: string, fallback: number, min: number, max: number): number {
  const value = env[name];
  if (value === undefined || value === '') return fallback;
  const number = Number(value);
  if (!/^\d+$/.test(value) || number < min || number > max) {
    throw new StartError(`${name} must be a whole number from ${min} to ${max}, not "${value}".`);
  }
  return number;
}

function flag(env: Env, name: string): boolean {
  const value = env[name];
  if (value === undefined || value === '' || value === '0' || value === 'false') return false;
  if (value === '1' || value === 'true') return true;
  throw new StartError(`${name} must be 1 or 0, not "${value}".`);
}

function choice<T extends string>(env: Env, name: string, allowed: readonly T[], fallback: T): T {
  const value = env[name];
  if (value === undefined || value === '') return fallback;
  const found = allowed.find((one) => one === value);
  if (found === undefined) throw new StartError(`${name} must be one of ${allowed.join(', ')}, not "${value}".`);
  return found;
}
