/**
 * `Command`: interface of the commands of `inference-coordinator`, with their exit codes and option parser.
 *
 * Each command has a file in this folder and an entry in command-table.ts. run.ts calls it.
 */
import { type ParseArgsConfig, parseArgs } from 'node:util';
import type { Environment } from '../config/environment.js';

/** Exit codes of all commands, for scripts and supervisors. */
export const EXIT = {
  ok: 0,
  /** The command ran and found a problem, or failed; stderr says why. */
  problem: 1,
  /** The command line or a setting is invalid, so a retry fails in the same way. */
  unusable: 2,
  /** The result is complete; a later step, such as removing old backups, failed. stderr says why. */
  doneWithWarnings: 3,
} as const;

export interface CommandContext {
  /** Environment of the process, plus the variables of `--env-file` that the process lacks. */
  readonly env: Environment;
  /** All values of `--env-file`, including overridden values. Empty without the option. */
  readonly fileSettings: Environment;
  /** Variables of `--env-file` that have no effect, because Node reads them from the environment before it reads the file. */
  readonly lateSettings: readonly string[];
  /** Path given by `--env-file`; null without the option. */
  readonly settingsFile: string | null;
  readonly out: (line: string) => void;
  readonly err: (line: string) => void;
  /** Asks a question on the terminal and hides the typed answer. Null: the process has no terminal. */
  readonly askHidden: ((question: string) => Promise<string>) | null;
}

export interface Command {
  /** Help text. First line: the arguments after `inference-coordinator`. After an empty line: details. */
  readonly usage: string;
  /**
   * Runs the command and returns its exit code. `args` no longer contain `--env-file`.
   *
   * @throws {UsageError} Invalid command line. Other expected failures are a SettingsError or StartupError. run.ts prints the message.
   */
  readonly run: (args: readonly string[], context: CommandContext) => Promise<number>;
}

/** Invalid command line. The message is one sentence for the operator. */
export class UsageError extends Error {
  override name = 'UsageError';
}

type Options = NonNullable<ParseArgsConfig['options']>;
type Parsed<T extends Options> = ReturnType<typeof parseArgs<{ args: string[]; options: T; strict: true; tokens: true }>>;

/** Parses the options of a command. Throws {@link UsageError} for positional arguments, and for empty, repeated or unknown options. */
export function optionsOf<const T extends Options>(args: readonly string[], options: T): Parsed<T>['values'] {
  let parsed: Parsed<T>;
  try {
    parsed = parseArgs({ args: [...args], options, strict: true, tokens: true });
  } catch (error) {
    throw new UsageError(firstSentence(error));
  }
  const seen = new Set<string>();
  for (const token of parsed.tokens) {
    if (token.kind !== 'option') continue;
    // An empty value is probably an unset script variable, which must not select the default.
    if (token.value === '') throw new UsageError(`${token.rawName} needs a value.`);
    if (seen.has(token.name)) throw new UsageError(`${token.rawName} is given twice.`);
    seen.add(token.name);
  }
  return parsed.values;
}

/** First sentence of a `parseArgs` error. The other sentences explain how to pass arguments that begin with a hyphen. */
function firstSentence(error: unknown): string {
  const text = error instanceof Error ? (error.message.split(/\.\s|\n/)[0] ?? '') : String(error);
  return `${text.replace(/\.$/, '')}.`;
}
