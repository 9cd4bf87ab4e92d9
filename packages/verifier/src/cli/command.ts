/** Interface of an `inference-verify` command, with option parsing and errors that all commands share. */
import { type ParseArgsConfig, parseArgs } from 'node:util';

export interface Report {
  readonly verified: boolean;
  readonly text: string;
  /** Output for `--json`. */
  readonly json: unknown;
}

export interface Command {
  readonly usage: string;
  readonly summary: string;
  /** Throws {@link UsageError} or {@link UnavailableError}. */
  run(args: readonly string[]): Promise<Report>;
}

export class UsageError extends Error {}

/** A file, an address or a package is unavailable or unusable. Exit code 3. */
export class UnavailableError extends Error {}

type Options = NonNullable<ParseArgsConfig['options']>;

/** Reads options and at most one positional argument. */
export function readArguments(args: readonly string[], options: Options) {
  try {
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true });
    if (positionals.length > 1) throw new UsageError(`${JSON.stringify(positionals[1])} is one argument too many`);
    const text = (name: string): string | null => {
      const value = values[name];
      return typeof value === 'string' ? value : null;
    };
    return { text, flag: (name: string): boolean => values[name] === true, positional: positionals[0] ?? null };
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

/** Checks the value of `--weights-sha256`; null if absent. Throws {@link UsageError} for a malformed hash. */
export function weightsHashOf(text: string | null): string | null {
  if (text === null || /^[0-9a-f]{64}$/.test(text)) return text;
  throw new UsageError('--weights-sha256 is 64 hexadecimal digits in lower case');
}
