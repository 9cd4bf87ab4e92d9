/** `completionTable`: words for shell completion, parsed from the usage texts: commands, options and values of options. */
import type { Command } from '../command.js';

export interface CompletedOption {
  readonly name: string;
  /** With `none`, the option takes no value. A `path` is a file or directory. */
  readonly value: 'none' | 'choices' | 'path' | 'text';
  readonly choices: readonly string[];
}

export interface CompletedCommand {
  /** One or two words. */
  readonly name: string;
  readonly summary: string;
  readonly options: readonly CompletedOption[];
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
      choices: choicesIn(/^\s+([a-z|]+\|[a-z|]+)(?=\s|$)/.exec(withoutOptions)?.[1] ?? ''),
      takesFile: /\bFILE\b/.test(withoutOptions),
    };
  });
}

/** An option, and its value after one space. */
const OPTION = /(--[a-z][a-z0-9-]*)(?: ([^\s\-[\]|][^\s[\]]*))?/g;
const HELP: CompletedOption = { name: '--help', value: 'none', choices: [] };

function optionOf(name: string, value: string | undefined): CompletedOption {
  if (value === undefined) return { name, value: 'none', choices: [] };
  const choices = choicesIn(value);
  if (choices.length > 0) return { name, value: 'choices', choices };
  return { name, value: /^(?:DIR|FILE)\b/.test(value) ? 'path' : 'text', choices: [] };
}

/** The literal words of `always|on_demand|MINUTES`. */
function choicesIn(value: string): string[] {
  return value.includes('|') ? value.split('|').filter((word) => /^[a-z][a-z0-9_]*$/.test(word)) : [];
}

/** With a summary each; a group without a command of its own lists its members. */
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
