/** `interpret` turns a command line into a command to run, a help text, the version, or an error text. */
import type { Command } from './command.js';
import { COMMANDS, type FoundCommand, findCommand, groupOf, overview, unknownCommand, usageOf } from './command-table.js';

type CommandLine =
  | ({ readonly kind: 'run' } & FoundCommand)
  | { readonly kind: 'help'; readonly text: string }
  | { readonly kind: 'version' }
  | { readonly kind: 'wrong'; readonly text: string };

const HELP = new Set(['--help', '-h']);

export function interpret(typed: readonly string[], commands: readonly Command[] = COMMANDS): CommandLine {
  const [first] = typed;
  if (first === undefined) return { kind: 'wrong', text: overview(commands) };
  if (first === '--version') return { kind: 'version' };
  if (first === 'help' || HELP.has(first)) return helpFor(typed.slice(1), commands);
  // A word after `--` is an argument.
  const options = typed.includes('--') ? typed.slice(0, typed.indexOf('--')) : typed;
  const asksForHelp = options.some((word) => HELP.has(word));
  const words = typed.slice(0, 2).filter((word) => !word.startsWith('-'));
  const group = groupOf(first, commands);
  const found = findCommand(typed, commands);
  if (group.length > 0 && (found === null || found.command.name === first)) {
    if (words.length === 2) return { kind: 'wrong', text: unknownCommand(typed, commands) };
    if (asksForHelp) return { kind: 'help', text: groupHelp(first, commands) };
    // Only options after the group's name: shows the help of the group.
    return found === null ? { kind: 'help', text: groupHelp(first, commands) } : { kind: 'run', ...found };
  }
  if (found === null) return { kind: 'wrong', text: unknownCommand(typed, commands) };
  return asksForHelp ? { kind: 'help', text: usageOf(found.command) } : { kind: 'run', ...found };
}

/** `help`, `help GROUP` and `help COMMAND`. */
function helpFor(typed: readonly string[], commands: readonly Command[]): CommandLine {
  const option = typed.findIndex((word) => word.startsWith('-'));
  const words = option < 0 ? typed : typed.slice(0, option);
  const [first] = words;
  if (first === undefined) return { kind: 'help', text: overview(commands) };
  const group = groupOf(first, commands);
  if (group.length > 0 && words.length === 1) return { kind: 'help', text: groupHelp(first, commands) };
  const found = findCommand(words, commands);
  const isUnknownMember = group.length > 0 && found?.command.name === first;
  if (found === null || isUnknownMember) return { kind: 'wrong', text: unknownCommand(words, commands) };
  return { kind: 'help', text: usageOf(found.command) };
}

function groupHelp(word: string, commands: readonly Command[]): string {
  const own = commands.find(({ name }) => name === word);
  const members = [...(own === undefined ? [] : [own]), ...groupOf(word, commands)];
  const width = Math.max(...members.map(({ name }) => name.length)) + 2;
  const lines = members.map(({ name, summary }) => `  ${name.padEnd(width)}${summary}`);
  const usage = own?.usage ?? `${word} COMMAND [OPTIONS]`;
  return [
    `Usage: inference-provider ${usage}`,
    '',
    ...lines,
    '',
    'For the options of a command, run: inference-provider COMMAND --help',
    '',
  ].join('\n');
}
