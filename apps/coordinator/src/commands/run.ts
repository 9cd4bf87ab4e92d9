/** `runCommandLine`, which main.ts calls, finds and runs a command, and converts errors to a message and an exit code. */
import { createRequire } from 'node:module';
import { packageProblem, SettingsError, StartupError } from '../config/startup-error.js';
import { errorFacts } from '../log.js';
import { type Command, type CommandContext, EXIT, UsageError } from './command.js';
import { COMMANDS, overview, unknownCommand, usageOf } from './command-table.js';
import { readSettingsFile } from './settings-file.js';

/** Environment, output and terminal of the process. Tests pass their own. */
interface CommandProcess extends Omit<CommandContext, 'env' | 'fileSettings' | 'settingsFile' | 'lateSettings'> {
  /** `process.env`. Values of `--env-file` are added, because packages such as `pg` read the environment themselves. */
  readonly env: Record<string, string | undefined>;
}

/** Variables that Node reads at its start, before the settings file can add them. */
const NODE_START_VARIABLES = ['NODE_EXTRA_CA_CERTS', 'NODE_OPTIONS'] as const;

const HELP_OPTIONS: ReadonlySet<string> = new Set(['--help', '-h']);

/** Runs the command that `typed` names, or `serve` if it names none. Returns the exit code; never throws. */
export async function runCommandLine(typed: readonly string[], terminal: CommandProcess): Promise<number> {
  const { out, err } = terminal;
  let name = 'serve';
  try {
    const { settingsFile, words } = withoutEnvFile(typed);
    const [first, ...rest] = words;
    if (first === '--version') {
      out((createRequire(import.meta.url)('#package.json') as { version: string }).version);
      return EXIT.ok;
    }
    if (first !== undefined && (HELP_OPTIONS.has(first) || (first === 'help' && rest.length === 0))) {
      out(overview());
      return EXIT.ok;
    }
    const asksForHelp = first === 'help' || rest.some((word) => HELP_OPTIONS.has(word));
    const hasName = first !== undefined && !first.startsWith('-');
    if (hasName) name = first === 'help' ? (rest[0] ?? '') : first;
    const entry = COMMANDS.find((known) => known.name === name);
    if (entry === undefined) {
      err(unknownCommand(name));
      return EXIT.unusable;
    }
    const command = await entry.load();
    if (asksForHelp) {
      out(usageOf(command, entry));
      return EXIT.ok;
    }
    return await run(command, name, hasName ? rest : words, { settingsFile, terminal });
  } catch (error) {
    if (error instanceof UsageError) {
      err(`${error.message}\n\`inference-coordinator ${name} --help\` lists the options.`);
      return EXIT.unusable;
    }
    const problem = packageProblem(error);
    if (problem !== null) {
      err(`\`${name}\` failed: ${problem}.`);
      return EXIT.unusable;
    }
    // Messages of StartupError are written for the operator. Other messages could quote secrets.
    err(error instanceof StartupError ? error.message : `\`${name}\` failed: ${JSON.stringify(errorFacts(error))}`);
    return error instanceof SettingsError ? EXIT.unusable : EXIT.problem;
  }
}

function run(
  command: Command,
  name: string,
  args: readonly string[],
  { settingsFile, terminal }: { readonly settingsFile: string | null; readonly terminal: CommandProcess },
): Promise<number> {
  const fileSettings = settingsFile === null ? {} : readSettingsFile(settingsFile);
  const lateSettings = NODE_START_VARIABLES.filter((variable) => fileSettings[variable] && !terminal.env[variable]);
  // The command `check` reports these variables itself.
  if (name !== 'check') for (const variable of lateSettings) terminal.err(lateSettingText(variable, settingsFile ?? ''));
  // An empty variable is treated as absent, so the file's value applies.
  for (const [variable, value] of Object.entries(fileSettings)) terminal.env[variable] ||= value;
  return command.run(args, { ...terminal, fileSettings, settingsFile, lateSettings });
}

function lateSettingText(variable: string, file: string): string {
  return `${variable} in ${file} has no effect: Node reads it from the environment at its start. Run the command with ${variable}=… in its environment.`;
}

/** Removes `--env-file FILE` or `--env-file=FILE` from the words before `--`. Throws {@link UsageError}. */
function withoutEnvFile(typed: readonly string[]): { readonly settingsFile: string | null; readonly words: readonly string[] } {
  const OPTION = '--env-file';
  const end = typed.includes('--') ? typed.indexOf('--') : typed.length;
  const at = typed.slice(0, end).findIndex((word) => word === OPTION || word.startsWith(`${OPTION}=`));
  if (at < 0) return { settingsFile: null, words: typed };
  const isSeparate = typed[at] === OPTION;
  const value = isSeparate ? typed.slice(0, end)[at + 1] : typed[at]?.slice(OPTION.length + 1);
  if (value === undefined || value === '') throw new UsageError(`${OPTION} needs a file.`);
  const words = typed.toSpliced(at, isSeparate ? 2 : 1);
  if (withoutEnvFile(words).settingsFile !== null) throw new UsageError(`${OPTION} is given twice.`);
  return { settingsFile: value, words };
}
