/** Table of the commands. Each is loaded when it is called, so that `serve` starts without the code of the others. */
import { closest, distance } from 'fastest-levenshtein';
import type { Command } from './command.js';

interface CommandEntry {
  readonly name: string;
  /** Line in the overview. */
  readonly summary: string;
  readonly load: () => Promise<Command>;
}

export const COMMANDS: readonly CommandEntry[] = [
  {
    name: 'serve',
    summary: 'Starts a coordinator. The default without a command.',
    load: async () => (await import('./serve.js')).serveCommand,
  },
  {
    name: 'migrate',
    summary: 'Applies database migrations, or shows the pending ones.',
    load: async () => (await import('./migrate.js')).migrateCommand,
  },
  {
    name: 'admin',
    summary: 'Creates and lists accounts with the admin flag.',
    load: async () => (await import('./admin.js')).adminCommand,
  },
  {
    name: 'ledger-check',
    summary: 'Verifies the whole ledger.',
    load: async () => (await import('./ledger-check.js')).ledgerCheckCommand,
  },
];

/** Help without a command. */
export function overview(): string {
  const width = Math.max(...COMMANDS.map(({ name }) => name.length)) + 2;
  return [
    'Usage: inference-coordinator [COMMAND] [--env-file FILE] [OPTIONS]',
    '',
    ...COMMANDS.map(({ name, summary }) => `  ${name.padEnd(width)}${summary}`),
    '',
    'Settings are environment variables, listed in docs/operating.md. --env-file FILE reads them from a file of NAME=value',
    'lines; the environment has precedence. NAME_FILE names a file that contains the value of a secret setting NAME.',
    '',
    'Exit codes: 0 ok, 1 a problem was found, 2 the command line or the settings cannot be used.',
    'For the options of a command, run: inference-coordinator COMMAND --help',
  ].join('\n');
}

export function usageOf({ usage }: Command, { summary }: CommandEntry): string {
  const [line, ...details] = usage.split('\n\n');
  return [`Usage: inference-coordinator ${line}`, summary, ...details].join('\n\n');
}

/** Error text for an unknown command, with the nearest name if it is near. */
export function unknownCommand(typed: string): string {
  const names = COMMANDS.map(({ name }) => name);
  const nearest = closest(typed, names);
  const isNear = distance(typed, nearest) <= Math.max(1, Math.floor(Math.max(typed.length, nearest.length) / 3));
  return `There is no command ${JSON.stringify(typed)}${isNear ? ` (did you mean ${nearest}?)` : ''}. For a list of commands, run: inference-coordinator --help`;
}
