/** Interface of a command. Each has its own file in this folder and a line in `command-table.ts`. */
import { type ParseArgsConfig, parseArgs } from 'node:util';
import type { Environment } from '../config/environment.js';

/** Exit codes of all commands, for scripts and supervisors. */
export const EXIT = {
  ok: 0,
  /** A check found a problem, or the work failed; stderr has a sentence. */
  problem: 1,
  /** The command line or the settings cannot be used: the same call fails again. */
  unusable: 2,
} as const;

export interface CommandContext {
  /** Environment of the process, with the values of `--env-file` for names that the process lacks. */
  readonly env: Environment;
  /** Values of `--env-file`, used or not. Empty without the option. */
  readonly fileSettings: Environment;
  /** Writes a line to standard output. */
  readonly out: (line: string) => void;
  /** Writes a line to standard error. */
  readonly err: (line: string) => void;
  /** Asks on the terminal without echo; null without a terminal. */
  readonly askHidden: ((question: string) => Promise<string>) | null;
}

/** A loaded command. Option `--env-file` is read before. */
export interface Command {
  /** The arguments after `inference-coordinator`; after an empty line, details. */
  readonly usage: string;
  /** Runs the command and returns the exit code. Throws {@link UsageError}, SettingsError or StartupError for a sentence on stderr. */
  readonly run: (args: readonly string[], context: CommandContext) => Promise<number>;
}

/** Invalid command line, as one sentence. */
export class UsageError extends Error {
  override name = 'UsageError';
}

type Options = NonNullable<ParseArgsConfig['options']>;
type Parsed<T extends Options> = ReturnType<typeof parseArgs<{ args: string[]; options: T; strict: true; tokens: true }>>;

/** Parses the options of a command. No option may be empty or repeated, and no other word is accepted. Throws {@link UsageError}. */
export function optionsOf<const T extends Options>(args: readonly string[], options: T): Parsed<T>['values'] {
  let parsed: Parsed<T>;
  try {
    parsed = parseArgs({ args: [...args], options, strict: true, tokens: true });
  } catch (error) {
    throw new UsageError(sentence(error));
  }
  const seen = new Set<string>();
  for (const token of parsed.tokens) {
    if (token.kind !== 'option') continue;
    // An empty value is probably a script's mistake, and must not select a default.
    if (token.value === '') throw new UsageError(`${token.rawName} needs a value.`);
    if (seen.has(token.name)) throw new UsageError(`${token.rawName} is given twice.`);
    seen.add(token.name);
  }
  return parsed.values;
}

/** First sentence of an error of `parseArgs`; the rest explains how to write odd arguments. */
function sentence(error: unknown): string {
  const text = error instanceof Error ? (error.message.split(/\.\s|\n/)[0] ?? '') : String(error);
  return `${text.replace(/\.$/, '')}.`;
}
