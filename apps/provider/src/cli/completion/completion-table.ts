/** `completionTable`: words for shell completion: the names of the commands, and options and values parsed from their usage texts. */
import type { Command } from '../command.js';

export interface CompletedOption {
  readonly name: string;
  /** With `none`, the option takes no value. A `path` is a file or directory. */
  readonly value: 'none' | 'choices' | 'path' | 'text';
  /** Possible values; empty unless `value` is `choices`. */
  readonly choices: readonly string[];
}

export interface CompletedCommand {
  /** One or two words. */
  readonly name: string;
  readonly summary: string;
  readonly options: readonly CompletedOption[];
  /** Possible first arguments, such as `on` and `off`; empty if any are possible. */
  readonly choices: readonly string[];
  /** Whether an argument may be a file. */
  readonly takesFile: boolean;
}

/** The synopsis of a usage text is its first paragraph. */
export function completionTable(commands: readonly Command[]): CompletedCommand[] {
  return commands.map(({ name, summary, usage }) => {
    const synopsis = (usage.split('\n\n')[0] ?? '').slice(name.length);
    const withoutOptions = synopsis.replace(OPTION, '');
    return {
      name,
      summary,
      options: [...[...synopsis.matchAll(OPTION)].map(([, option = '', value]) => optionOf(option, value)), HELP],
      choices: choicesIn(FIRST_CHOICES.exec(withoutOptions)?.[1] ?? ''),
      takesFile: /\bFILE\b/.test(withoutOptions),
    };
  });
}

/** Matches an option, and its value after one space: `--keep` and `always|on_demand` in `[--keep always|on_demand]`. */
const OPTION = /(--[a-z][a-z0-9-]*)(?: ([^\s\-[\]|][^\s[\]]*))?/g;
/** Matches literal first arguments: `on|off|test` in ` [on|off|test] [--json]`. */
const FIRST_CHOICES = /^\s+\[?([a-z]+(?:\|[a-z]+)+)(?=[\]\s]|$)/;
const HELP: CompletedOption = { name: '--help', value: 'none', choices: [] };

function optionOf(name: string, value: string | undefined): CompletedOption {
  if (value === undefined) return { name, value: 'none', choices: [] };
  const choices = choicesIn(value);
  if (choices.length > 0) return { name, value: 'choices', choices };
  return { name, value: /^(?:DIR|FILE)\b/.test(value) ? 'path' : 'text', choices: [] };
}

/** Lower-case words of alternatives: `always` and `on_demand` of `always|on_demand|MINUTES`. Empty without `|`. */
function choicesIn(value: string): string[] {
  return value.includes('|') ? value.split('|').filter((word) => /^[a-z][a-z0-9_]*$/.test(word)) : [];
}

/** First words of all commands, each with a summary: a list of the second words if the word alone is no command, such as `models`. */
export function firstWords(table: readonly CompletedCommand[]): (readonly [word: string, summary: string])[] {
  const words = [...new Set(table.map(({ name }) => name.split(' ')[0] as string))];
  return words.map((word) => {
    const own = table.find(({ name }) => name === word);
    const members = membersOf(word, table).map(([member]) => member);
    return [word, own?.summary ?? `Commands: ${members.join(', ')}.`];
  });
}

export function membersOf(word: string, table: readonly CompletedCommand[]): (readonly [word: string, summary: string])[] {
  return table.filter(({ name }) => name.startsWith(`${word} `)).map(({ name, summary }) => [name.slice(word.length + 1), summary]);
}
