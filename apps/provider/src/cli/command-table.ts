/** `COMMANDS`, the table of all commands, with lookup, help texts, and texts about unknown commands. */
import { didYouMean, nearest } from '../config/did-you-mean.js';
import type { Command } from './command.js';
import { bugreportCommand } from './commands/bugreport.js';
import { completionCommand } from './commands/completion.js';
import { doctorCommand } from './commands/doctor.js';
import { earningsCommand } from './commands/earnings.js';
import { loginCommand } from './commands/login.js';
import { logoutCommand } from './commands/logout.js';
import { logsCommand } from './commands/logs.js';
import { menuBarOffCommand, menuBarOnCommand } from './commands/menu-bar.js';
import { modelsListCommand } from './commands/models/list.js';
import { modelsPullCommand } from './commands/models/pull.js';
import { modelsRecommendCommand } from './commands/models/recommend.js';
import { modelsRemoveCommand } from './commands/models/remove.js';
import { modelsSearchCommand } from './commands/models/search.js';
import { modelsUseCommand } from './commands/models/use.js';
import { notificationsCommand } from './commands/notifications.js';
import { pauseCommand, resumeCommand } from './commands/pause.js';
import { remoteControlCommand } from './commands/remote-control.js';
import { restartCommand } from './commands/restart.js';
import { scheduleClearCommand, scheduleCommand, scheduleSetCommand } from './commands/schedule.js';
import { serveCommand } from './commands/serve.js';
import { setupCommand } from './commands/setup.js';
import { startCommand } from './commands/start.js';
import { statusCommand } from './commands/status.js';
import { stopCommand } from './commands/stop.js';
import { uninstallCommand } from './commands/uninstall.js';
import { updateCommand } from './commands/update.js';
import { verifyCommand } from './commands/verify.js';

export const COMMANDS: readonly Command[] = [
  setupCommand,
  serveCommand,
  startCommand,
  stopCommand,
  restartCommand,
  statusCommand,
  doctorCommand,
  pauseCommand,
  resumeCommand,
  scheduleCommand,
  scheduleSetCommand,
  scheduleClearCommand,
  remoteControlCommand,
  notificationsCommand,
  earningsCommand,
  loginCommand,
  logoutCommand,
  verifyCommand,
  logsCommand,
  modelsRecommendCommand,
  modelsSearchCommand,
  modelsPullCommand,
  modelsListCommand,
  modelsUseCommand,
  modelsRemoveCommand,
  menuBarOnCommand,
  menuBarOffCommand,
  updateCommand,
  bugreportCommand,
  completionCommand,
  uninstallCommand,
];

export interface FoundCommand {
  readonly command: Command;
  /** Arguments after the name. */
  readonly args: readonly string[];
}

/** Finds the typed command. The longest matching name wins: `schedule set` before `schedule`. */
export function findCommand(typed: readonly string[], commands: readonly Command[] = COMMANDS): FoundCommand | null {
  let found: FoundCommand | null = null;
  let maxWords = 0;
  for (const command of commands) {
    const words = command.name.split(' ');
    if (words.length <= maxWords || !words.every((word, index) => typed[index] === word)) continue;
    maxWords = words.length;
    found = { command, args: typed.slice(words.length) };
  }
  return found;
}

/** For `--help` and for an empty command line. */
export function overview(commands: readonly Command[] = COMMANDS): string {
  const width = Math.max(...commands.map(({ name }) => name.length)) + 2;
  const lines = commands.map(({ name, summary }) => `  ${name.padEnd(width)}${summary}`);
  return [
    'Usage: inference-provider COMMAND [OPTIONS]',
    '',
    ...lines,
    '',
    'For the options of a command, run: inference-provider COMMAND --help',
    '',
  ].join('\n');
}

export function groupOf(word: string, commands: readonly Command[] = COMMANDS): readonly Command[] {
  return commands.filter(({ name }) => name.startsWith(`${word} `));
}

export function unknownCommand(typed: readonly string[], commands: readonly Command[] = COMMANDS): string {
  const [first = '', second] = typed;
  const hint = 'For a list of commands, run: inference-provider --help';
  const group = groupOf(first, commands).map(({ name }) => name);
  if (group.length > 0) {
    const isAlone = second === undefined || second.startsWith('-');
    // If only the group is typed, all of its commands are listed instead of one suggestion.
    const meant = isAlone
      ? null
      : nearest(
          second,
          group.map((name) => name.slice(first.length + 1)),
        );
    const own = commands.some(({ name }) => name === first) ? [first] : [];
    const which = meant === null ? `. Commands: ${[...own, ...group].join(', ')}.` : ` (did you mean ${first} ${meant}?).`;
    return `There is no command ${JSON.stringify(isAlone ? first : `${first} ${second}`)}${which} ${hint}\n`;
  }
  const names = commands.map(({ name }) => name);
  const two = second === undefined || second.startsWith('-') ? first : `${first} ${second}`;
  const firsts = [...new Set(names.map((name) => name.split(' ')[0] as string))];
  const meant = didYouMean(two, names) || didYouMean(first, firsts);
  return `There is no command ${JSON.stringify(first)}${meant}. ${hint}\n`;
}

export function usageOf({ usage, summary }: Command): string {
  const [line, ...details] = usage.split('\n\n');
  return `${[`Usage: inference-provider ${line}`, summary, ...details].join('\n\n')}\n`;
}
