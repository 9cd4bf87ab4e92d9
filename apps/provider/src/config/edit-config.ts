/**
 * Changes settings in `config.toml` for commands, and leaves the owner's comments, order and layout as they are. What comes out
 * is read before it is written, so that no command can leave a file behind that the daemon refuses.
 */
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { writePrivateFile } from '../files/private-file.js';
import type { Config } from './config.js';
import { locate, type Place, pointer } from './locate.js';
import { configText, parseConfig } from './read-config.js';

export type TomlValue = string | number | boolean | readonly TomlValue[] | { readonly [key: string]: TomlValue };

export interface Change {
  /** One key of the top, or a section and its key, as in `['availability', 'windows']`. */
  readonly path: readonly [string] | readonly [string, string];
  /** Null takes the setting out, so that its default holds. */
  readonly value: TomlValue | null;
}

/** Writes the file anew, whole or not at all, and returns what it says then. Throws ConfigError of the file before or after. */
export function editConfig(path: string, changes: readonly Change[]): Config {
  const text = configText(path) ?? '';
  parseConfig(text, path);
  const changed = changes.reduce(withChange, text);
  const config = parseConfig(changed, path);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writePrivateFile(path, changed);
  return config;
}

/** The text with one setting changed. The text must be TOML. */
export function withChange(text: string, { path, value }: Change): string {
  const places = locate(text);
  const old = places.get(pointer(path));
  if (value === null) return old === undefined ? text : without(text, places, path, old);
  if (old?.kind === 'value') return splice(text, old.from, old.to, inline(value));
  // What has headers of its own ([[a.b]]) is taken out, and stands as a value then.
  if (old !== undefined) return withChange(without(text, places, path, old), { path, value });
  const [section, key] = path;
  const line = (name: string): string => `${name} = ${inline(value)}\n`;
  if (key === undefined) return insertBeforeTables(text, line(section));
  const table = places.get(pointer([section]));
  if (table === undefined)
    return `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}${text === '' ? '' : '\n'}[${section}]\n${line(key)}`;
  if (table.kind === 'header') return insertAfter(text, table.to, line(key));
  if (text[table.from] !== '{') return insertBeforeTables(text, line(`${section}.${key}`));
  const isEmpty = /^\{\s*\}$/.test(text.slice(table.from, table.to));
  return splice(text, table.from + 1, table.from + 1, ` ${key} = ${inline(value)}${isEmpty ? ' ' : ','}`);
}

function without(text: string, places: ReturnType<typeof locate>, path: Change['path'], old: Place): string {
  if (old.kind === 'header') {
    let left = text;
    for (let index = 0; ; index++) {
      const element = places.get(pointer([...path, index]));
      if (element === undefined) break;
      left = `${left.slice(0, element.from)}${' '.repeat(element.to - element.from)}${left.slice(element.to)}`;
    }
    return left.replace(/^ +\n/gm, '');
  }
  const lineStart = text.lastIndexOf('\n', old.key - 1) + 1;
  const end = text.indexOf('\n', old.to);
  const lineEnd = end < 0 ? text.length : end + 1;
  // Alone on its line, be it behind the name of its table and a dot.
  if (/^[ \t]*(?:[\w"'-]+[ \t]*\.[ \t]*)?$/.test(text.slice(lineStart, old.key)) && /^[ \t]*(#.*)?\n?$/.test(text.slice(old.to, lineEnd))) {
    return splice(text, lineStart, lineEnd, '');
  }
  // In an inline table: with one comma beside it.
  const after = /^\s*,\s*/.exec(text.slice(old.to));
  if (after !== null) return splice(text, old.key, old.to + after[0].length, '');
  const before = /,\s*$/.exec(text.slice(0, old.key));
  return splice(text, old.key - (before?.[0].length ?? 0), old.to, '');
}

function insertBeforeTables(text: string, line: string): string {
  const first = [...locate(text).values()]
    .filter(({ kind }) => kind === 'header')
    .reduce((least, { from }) => Math.min(least, from), text.length);
  const head = text.slice(0, first);
  if (first === text.length) return `${head}${head === '' || head.endsWith('\n') ? '' : '\n'}${line}`;
  // Above the header and the comment lines that belong to it.
  const comment = /(?:^[ \t]*#.*\n)*[ \t]*(?![\s\S])/m.exec(head)?.index ?? first;
  const before = text.slice(0, comment);
  const settings = before.trimEnd();
  if (settings === '') return `${before}${line}\n${text.slice(comment)}`;
  // Empty lines go on to stand between the settings and the table.
  return `${settings}\n${line}${before.slice(settings.length).replace(/^[^\S\n]*\n/, '')}${text.slice(comment)}`;
}

function insertAfter(text: string, offset: number, line: string): string {
  const end = text.indexOf('\n', offset);
  return end < 0 ? `${text}\n${line}` : splice(text, end + 1, end + 1, line);
}

function splice(text: string, from: number, to: number, part: string): string {
  return text.slice(0, from) + part + text.slice(to);
}

/** On one line. A JSON string is a basic string of TOML. */
function inline(value: TomlValue): string {
  if (typeof value === 'string') return JSON.stringify(value).replaceAll('\u007f', '\\u007f');
  if (typeof value !== 'object') return String(value);
  if (Array.isArray(value)) return `[${value.map(inline).join(', ')}]`;
  const pairs = Object.entries(value as Readonly<Record<string, TomlValue>>).map(([key, each]) => `${key} = ${inline(each)}`);
  return pairs.length === 0 ? '{}' : `{ ${pairs.join(', ')} }`;
}
