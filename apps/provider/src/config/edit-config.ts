/** `editConfig` changes settings in `config.toml`, and preserves its comments, order and layout. Writes only a file that is valid. */
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { writePrivateFile } from '../files/private-file.js';
import type { Config } from './config.js';
import { locate, type Places, pointer } from './locate.js';
import { configText, parseConfig } from './read-config.js';

export type TomlValue = string | number | boolean | readonly TomlValue[] | { readonly [key: string]: TomlValue };

export interface Change {
  /** Top-level key, or section and key, as in `['availability', 'windows']`. */
  readonly path: readonly [string] | readonly [string, string];
  /** Null removes the setting, so that its default applies. */
  readonly value: TomlValue | null;
}

/** Writes the file atomically and returns the new settings. Throws ConfigError if the file is invalid before or after the change. */
export function editConfig(path: string, changes: readonly Change[]): Config {
  const text = configText(path) ?? '';
  parseConfig(text, path);
  const changed = changes.reduce(withChange, text);
  const config = parseConfig(changed, path);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writePrivateFile(path, changed);
  return config;
}

/** Stores the availability schedule. Without windows, the agent is always available. Throws as {@link editConfig}. */
export function storeSchedule(
  path: string,
  windows: readonly { readonly days: readonly string[]; readonly from: string; readonly to: string }[],
): Config {
  const value = windows.map(({ days, from, to }): TomlValue => ({ days, from, to }));
  return editConfig(path, [{ path: ['availability', 'windows'], value }]);
}

/** The text must be valid TOML. */
export function withChange(text: string, { path, value }: Change): string {
  const places = locate(text);
  const old = places.get(pointer(path));
  if (value === null) return withoutSetting(text, places, path);
  if (old !== undefined && ownValues(places).has(pointer(path))) return splice(text, old.valueStart, old.valueEnd, inlineText(value));
  const [section, key] = path;
  if (key !== undefined) return insertSetting(withoutSetting(text, places, path), section, key, value);
  const members = membersOf(places, section);
  const isArrayOfTables = old?.kind === 'header' && text.startsWith('[[', old.start);
  if (isTable(value) && !isArrayOfTables && (old !== undefined || members.length > 0)) return withMembers(text, section, members, value);
  return insertBeforeTables(withoutSetting(text, places, path), `${keyText(section)} = ${inlineText(value)}\n`);
}

/** Changes settings one by one, so that header, layout and comments are preserved. */
function withMembers(text: string, section: string, members: readonly string[], value: Readonly<Record<string, TomlValue>>): string {
  const removals = members
    .filter((member) => !Object.hasOwn(value, member))
    .map((member): Change => ({ path: [section, member], value: null }));
  const set = Object.entries(value).map(([member, each]): Change => ({ path: [section, member], value: each }));
  const changed = [...removals, ...set].reduce(withChange, text);
  return locate(changed).has(pointer([section])) || set.length > 0 ? changed : insertBeforeTables(changed, `${keyText(section)} = {}\n`);
}

/** Adds a setting to its section, which is added at the end if missing. */
function insertSetting(text: string, section: string, key: string, value: TomlValue): string {
  const places = locate(text);
  const line = `${keyText(key)} = ${inlineText(value)}\n`;
  const table = places.get(pointer([section]));
  if (table === undefined)
    return `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}${text === '' ? '' : '\n'}[${keyText(section)}]\n${line}`;
  if (table.kind === 'header') return insertAfter(text, table.valueEnd, line);
  if (!ownValues(places).has(pointer([section]))) return insertBeforeTables(text, `${keyText(section)}.${line}`);
  const isEmpty = /^\{\s*\}$/.test(text.slice(table.valueStart, table.valueEnd));
  return splice(text, table.valueStart + 1, table.valueStart + 1, ` ${line.trimEnd()}${isEmpty ? ' ' : ','}`);
}

/** Removes values, headers and sub-tables. Comments on separate lines stay. */
function withoutSetting(text: string, places: Places, path: Change['path']): string {
  const name = pointer(path);
  const values = ownValues(places);
  const under = [...places].filter(([each]) => each === name || each.startsWith(`${name}/`));
  const headers = new Set(under.filter(([, { kind }]) => kind === 'header').map(([, { start }]) => start));
  const spans = [...headers].map((start) => ({ start, end: start }));
  for (const [each, { start, valueEnd }] of under) if (values.has(each)) spans.push({ start, end: valueEnd });
  // Removes the last span first, so that earlier offsets stay valid.
  const outer = spans.filter((one) => !spans.some((other) => other.start < one.start && one.end < other.end));
  const ownPlaces = [...places].filter(([each]) => values.has(each)).map(([, place]) => place);
  return outer
    .sort((one, other) => other.start - one.start)
    .reduce((left, { start, end }) => {
      const isMember = ownPlaces.some((place) => place.valueStart < start && end < place.valueEnd);
      return isMember ? withoutMember(left, start, end) : withoutLines(left, start, end);
    }, text);
}

/** Removes the lines of a statement, and one of two empty lines that would become adjacent. */
function withoutLines(text: string, start: number, to: number): string {
  const before = text.slice(0, text.lastIndexOf('\n', start - 1) + 1);
  const end = text.indexOf('\n', to);
  const after = end < 0 ? '' : text.slice(end + 1);
  const followsEmptyLine = before === '' || /\n\r?\n$/.test(before);
  return before + (followsEmptyLine ? after.replace(/^\r?\n/, '') : after);
}

/** Of an inline table, with one adjacent comma. */
function withoutMember(text: string, start: number, to: number): string {
  const after = /^\s*,\s*/.exec(text.slice(to));
  if (after !== null) return splice(text, start, to + after[0].length, '');
  const before = /,\s*$/.exec(text.slice(0, start));
  return splice(text, start - (before?.[0].length ?? 0), to, '');
}

/** Paths with a value of their own: of `a.b = 1`, only `/a/b`. */
function ownValues(places: Places): ReadonlySet<string> {
  const names = new Map<number, string>();
  for (const [name, { kind, valueStart }] of places) {
    if (kind === 'value' && name.length > (names.get(valueStart) ?? '').length) names.set(valueStart, name);
  }
  return new Set(names.values());
}

function membersOf(places: Places, section: string): string[] {
  const prefix = `${pointer([section])}/`;
  const own = [...places.keys()].filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length).split('/')[0] as string);
  return [...new Set(own)].map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** Top-level settings must precede the first table. */
function insertBeforeTables(text: string, line: string): string {
  const places = [...locate(text).values()];
  const first = places.filter(({ kind }) => kind === 'header').reduce((min, { start }) => Math.min(min, start), text.length);
  const head = text.slice(0, first);
  if (first === text.length) return `${head}${head === '' || head.endsWith('\n') ? '' : '\n'}${line}`;
  // Inserts above the first header and its comment lines. Lines within a multi-line string are not comments.
  const last = places.filter(({ valueStart }) => valueStart < first).reduce((max, { valueEnd }) => Math.max(max, valueEnd), 0);
  const comment = last + (/(?:^[ \t]*#.*\n)*[ \t]*(?![\s\S])/m.exec(head.slice(last))?.index ?? first - last);
  const before = text.slice(0, comment);
  const settings = before.trimEnd();
  if (settings === '') return `${before}${line}\n${text.slice(comment)}`;
  // Empty lines stay between the settings and the table.
  return `${settings}\n${line}${before.slice(settings.length).replace(/^[^\S\n]*\n/, '')}${text.slice(comment)}`;
}

function insertAfter(text: string, offset: number, line: string): string {
  const end = text.indexOf('\n', offset);
  return end < 0 ? `${text}\n${line}` : splice(text, end + 1, end + 1, line);
}

function splice(text: string, from: number, to: number, part: string): string {
  return text.slice(0, from) + part + text.slice(to);
}

/** A JSON string is also a TOML basic string, except for DEL. */
function inlineText(value: TomlValue): string {
  if (typeof value === 'string') return JSON.stringify(value).replaceAll('\u007f', '\\u007f');
  if (typeof value !== 'object') return String(value);
  if (Array.isArray(value)) return `[${value.map(inlineText).join(', ')}]`;
  const pairs = Object.entries(value as Readonly<Record<string, TomlValue>>).map(([key, each]) => `${keyText(key)} = ${inlineText(each)}`);
  return pairs.length === 0 ? '{}' : `{ ${pairs.join(', ')} }`;
}

function isTable(value: TomlValue): value is Readonly<Record<string, TomlValue>> {
  return typeof value === 'object' && !Array.isArray(value);
}

function keyText(key: string): string {
  return /^[\w-]+$/.test(key) ? key : inlineText(key);
}
