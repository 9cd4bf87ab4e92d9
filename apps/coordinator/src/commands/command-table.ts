/** `COMMANDS`: all commands of `inference-coordinator`, and help texts. A command's module is imported only when needed. */
import { nearestNames } from '@inference/formats';
import type { Command } from './command.js';

interface CommandEntry {
  readonly name: string;
  /** One sentence for the list of commands in `--help`. */
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
    name: 'check',
    summary: 'Finds problems with the settings and with what they name.',
    load: async () => (await import('./check/check.js')).checkCommand,
  },
  {
    name: 'admin',
    summary: 'Creates and lists accounts with the admin flag.',
    load: async () => (await import('./admin.js')).adminCommand,
  },
  { name: 'ledger-check', summary: 'Verifies the whole ledger.', load: async () => (await import('./ledger-check.js')).ledgerCheckCommand },
  {
    name: 'backup',
    summary: 'Copies the database and keys while the coordinator runs.',
    load: async () => (await import('./backup.js')).backupCommand,
  },
  {
    name: 'restore',
    summary: 'Restores a backup, and checks the ledger.',
    load: async () => (await import('./restore.js')).restoreCommand,
  },
];

/** Output of `inference-coordinator --help`. */
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
    'Exit codes: 0 ok, 1 a problem was found, 2 the command line or the settings cannot be used, 3 done with warnings (backup).',
    'For the options of a command, run: inference-coordinator COMMAND --help',
  ].join('\n');
}

/** Output of `inference-coordinator COMMAND --help`. */
export function usageOf({ usage }: Command, { summary }: CommandEntry): string {
  const [line, ...details] = usage.split('\n\n');
  return [`Usage: inference-coordinator ${line}`, summary, ...details].join('\n\n');
}

/** Suggests a command whose name is similar. */
export function unknownCommand(typed: string): string {
  const names = COMMANDS.map(({ name }) => name);
  const [nearest] = nearestNames(typed, names, 1);
  const suggestion = nearest === undefined ? '' : ` (did you mean ${nearest}?)`;
  return `There is no command ${JSON.stringify(typed)}${suggestion}. For a list of commands, run: inference-coordinator --help`;
}
