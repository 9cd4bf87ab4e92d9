/** `readSettingsFile`: settings from the file that the option `--env-file` names. */
import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import type { Environment } from '../config/environment.js';
import { errorReason, SettingsError } from '../config/startup-error.js';

const MAX_SETTINGS_FILE_BYTES = 1024 * 1024;

/** Reads a file in the format of Node's own `--env-file`. Throws {@link SettingsError} if unreadable or invalid, without quoting values. */
export function readSettingsFile(path: string): Environment {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new SettingsError(`The settings file ${path} cannot be read: ${errorReason(error)}.`, { cause: error });
  }
  if (text.length > MAX_SETTINGS_FILE_BYTES) throw new SettingsError(`The settings file ${path} is larger than 1 MiB.`);
  checkLines(text, path);
  return parseEnv(text);
}

/** Refuses lines that `parseEnv` would accept and misread. */
function checkLines(text: string, path: string): void {
  let quote: string | null = null;
  for (const [index, line] of text.split('\n').entries()) {
    if (quote !== null) {
      if (line.includes(quote)) quote = null;
      continue;
    }
    if (/^\s*(#|$)/.test(line)) continue;
    const where = `Line ${index + 1} of the settings file ${path}`;
    const [, value] = /^\s*(?:export\s+)?[A-Za-z_][A-Za-z0-9_]*\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    if (value === undefined) throw new SettingsError(`${where} must have the form NAME=value.`);
    const [, opening, rest = ''] = /^(["'`])(.*)$/.exec(value) ?? [];
    if (opening !== undefined) {
      if (!rest.includes(opening)) quote = opening;
    } else if (/\S#/.test(value)) {
      throw new SettingsError(`${where} has a # in its value, which would begin a comment: put the value in quotes.`);
    }
  }
  if (quote !== null) throw new SettingsError(`The settings file ${path} has a value without its closing ${quote}.`);
}
