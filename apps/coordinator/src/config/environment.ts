/**
 * Functions that read and validate one environment variable. An empty variable is treated as absent.
 *
 * An invalid value throws a {@link StartupError} that names the variable.
 */
import { StartupError } from './startup-error.js';

export type Environment = Readonly<Record<string, string | undefined>>;

export function text(env: Environment, name: string): string | null {
  return env[name] || null;
}

/** Items separated by commas. */
export function list(env: Environment, name: string): string[] {
  return (env[name] ?? '')
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

export function integer(env: Environment, name: string, fallback: number, min: number, max: number): number {
  const value = text(env, name);
  if (value === null) return fallback;
  const number = Number(value);
  if (!/^\d+$/.test(value) || number < min || number > max) {
    throw new StartupError(`${name} must be a whole number from ${min} to ${max}, not "${value}".`);
  }
  return number;
}

export function flag(env: Environment, name: string): boolean {
  const value = text(env, name);
  if (value === null || value === '0' || value === 'false') return false;
  if (value === '1' || value === 'true') return true;
  throw new StartupError(`${name} must be 1 or 0, not "${value}".`);
}

export function choice<T extends string>(env: Environment, name: string, allowed: readonly T[], fallback: T): T {
  const value = text(env, name);
  if (value === null) return fallback;
  const found = allowed.find((one) => one === value);
  if (found === undefined) throw new StartupError(`${name} must be one of ${allowed.join(', ')}, not "${value}".`);
  return found;
}

/**
 * The text of a variable that `isValid` accepts; null if absent. `requirement` completes the error message "NAME must …".
 *
 * The message does not contain the value, which may be a password.
 */
export function checked(env: Environment, name: string, isValid: (value: string) => boolean, requirement: string): string | null {
  const value = text(env, name);
  if (value !== null && !isValid(value)) throw new StartupError(`${name} must ${requirement}.`);
  return value;
}

/** `description` completes "NAME must be …". */
export function secret(env: Environment, name: string, pattern: RegExp, description: string): string | null {
  return checked(env, name, (value) => pattern.test(value), `be ${description}`);
}

export function httpUrl(env: Environment, name: string): string | null {
  const isUrl = (value: string): boolean => /^https?:\/\//.test(value) && URL.canParse(value);
  return checked(env, name, isUrl, 'be an address that begins with http:// or https://');
}
